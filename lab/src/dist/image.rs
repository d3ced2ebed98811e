//! An OCI image (opencontainers/image-spec v1.1) as one tar of its layout: `docker load` and `podman load`
//! take it, and with the index of older engines in it also those before Docker 25. The base is a small Debian
//! with git, for whoever has no image of their own toolchain to put the program into.

use super::{OCI_ARCH, archive::Tree, archive::tar, digest, epoch, hex, output, root, version};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use xtask::check;

/// Writes `bailey-VERSION-oci.tar`.
pub(super) fn write(tree: &Tree, out: &Path) -> Result<PathBuf> {
    let layout = Layout::new(&out.join("oci"))?;
    let base = root::made(root::OLD, &["ca-certificates", "git"])?;
    let program = out.join("oci-program");
    if program.exists() {
        fs::remove_dir_all(&program)?;
    }
    fs::create_dir_all(program.join("usr"))?;
    check(Command::new("cp").args(["-a", "-T"]).arg(&tree.path).arg(program.join("usr/local")))?;
    let layers = [layout.layer(&base)?, layout.layer(&program)?];
    let created = output("date", &["-u", "-d", &format!("@{}", epoch()?), "+%Y-%m-%dT%H:%M:%SZ"])?;
    let config = layout.json(&json!({
        "created": created, "architecture": OCI_ARCH, "os": "linux",
        "config": {
            "Entrypoint": ["bailey"], "WorkingDir": "/work",
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "BAILEY_HOME=/home/bailey"],
            "Volumes": { "/work": {}, "/home/bailey": {} },
            "Labels": { "org.opencontainers.image.title": "bailey", "org.opencontainers.image.version": version() },
        },
        "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|layer| &layer.plain).collect::<Vec<_>>() },
    }))?;
    let manifest = layout.json(&json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.described("application/vnd.oci.image.config.v1+json"),
        "layers": layers.iter().map(|layer| layer.packed.described("application/vnd.oci.image.layer.v1.tar+gzip"))
            .collect::<Vec<_>>(),
    }))?;
    let index = json!({ "schemaVersion": 2, "manifests": [{
        "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": manifest.digest, "size": manifest.size,
        "annotations": {
            "org.opencontainers.image.ref.name": version(),
            "io.containerd.image.name": format!("docker.io/library/bailey:{}", version()),
        },
    }] });
    fs::write(layout.path.join("index.json"), index.to_string())?;
    // What engines before Docker 25 read in the layout's place.
    let older = json!([{
        "Config": config.place(), "RepoTags": [format!("bailey:{}", version())],
        "Layers": layers.iter().map(|layer| layer.packed.place()).collect::<Vec<_>>(),
    }]);
    fs::write(layout.path.join("manifest.json"), older.to_string())?;
    fs::write(layout.path.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;

    let file = out.join(format!("bailey-{}-oci.tar", version()));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{}", epoch()?));
    check(tar.arg("-cf").arg(&file).arg("-C").arg(&layout.path).arg("."))?;
    fs::remove_dir_all(&layout.path)?;
    fs::remove_dir_all(&program)?;
    Ok(file)
}

/// The folder of an image layout, with its blobs under their digests.
struct Layout {
    path: PathBuf,
}

/// A blob: its digest in the layout's spelling, and its bytes' number.
struct Blob {
    digest: String,
    size: u64,
}

struct Layer {
    packed: Blob,
    /// The digest of the layer before it was packed: a layer's name in the image's configuration.
    plain: String,
}

impl Blob {
    /// Where it lies in the layout.
    fn place(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }

    fn described(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest, "size": self.size })
    }
}

impl Layout {
    fn new(path: &Path) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        fs::create_dir_all(path.join("blobs/sha256"))?;
        Ok(Self { path: path.to_owned() })
    }

    fn layer(&self, tree: &Path) -> Result<Layer> {
        let file = self.path.join("layer.tar.gz");
        tar(tree, ".", &file)?;
        let sum = output("sh", &["-c", &format!("gzip -dc '{}' | sha256sum", file.display())])?;
        let plain = format!("sha256:{}", sum.split_whitespace().next().context("no digest of the layer")?);
        Ok(Layer { packed: self.take(&file)?, plain })
    }

    fn json(&self, value: &Value) -> Result<Blob> {
        let bytes = value.to_string();
        let file = self.path.join(hex(&Sha256::digest(bytes.as_bytes())));
        fs::write(&file, bytes)?;
        self.take(&file)
    }

    fn take(&self, file: &Path) -> Result<Blob> {
        let (digest, size) = (digest(file)?, fs::metadata(file)?.len());
        fs::rename(file, self.path.join("blobs/sha256").join(&digest))?;
        Ok(Blob { digest: format!("sha256:{digest}"), size })
    }
}
