//! Which parts of the host's tools a sandbox may read: an allow-list, part by part.
//!
//! A dot-directory of the home is never bound whole, because tools keep credentials beside their programs
//! (`~/.cargo/credentials.toml` lies beside `~/.cargo/bin`). What package managers fetched is among the parts: without a
//! network nothing else can be built with.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// A tool's directory below the home, and what of it is program or fetched source.
struct Tool {
    directory: &'static str,
    parts: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool { directory: ".cargo", parts: &["bin", "registry", "git"] },
    Tool { directory: ".rustup", parts: &["toolchains", "settings.toml"] },
    Tool {
        directory: ".pyenv",
        parts: &["bin", "libexec", "shims", "versions", "version", "pyenv.d", "plugins"],
    },
    Tool { directory: ".local/share/uv", parts: &["python", "tools"] },
    Tool { directory: ".local/bin", parts: &["uv", "uvx"] },
    Tool { directory: ".cache", parts: &["pip", "pypoetry/virtualenvs"] },
    Tool { directory: ".npm", parts: &["_cacache"] },
    Tool { directory: ".nvm", parts: &["versions", "alias", "nvm.sh"] },
    Tool { directory: ".volta", parts: &["bin", "tools"] },
    Tool { directory: ".bun", parts: &["bin"] },
    Tool { directory: ".deno", parts: &["bin"] },
    Tool { directory: "go", parts: &["bin", "pkg/mod"] },
    Tool { directory: ".m2", parts: &["repository", "wrapper/dists"] },
    Tool { directory: ".rbenv", parts: &["bin", "libexec", "shims", "versions", "version"] },
    Tool { directory: ".asdf", parts: &["bin", "lib", "shims", "installs", "plugins"] },
    Tool { directory: ".local/share/mise", parts: &["shims", "installs"] },
    Tool { directory: ".sdkman", parts: &["candidates"] },
    Tool { directory: ".ghcup", parts: &["bin", "ghc", "cabal"] },
];

/// Directories outside of /usr that hold one tool each; what PATH names below them is bound with its siblings.
const PREFIXES: &[&str] = &["/opt", "/nix", "/home/linuxbrew/.linuxbrew", "/var/lib/snapd"];

/// Where programs are looked for after what the host's PATH names.
const STANDARD_PATH: &[&str] =
    &["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/// The parts of tools that are there, absolute.
pub(crate) fn in_home(home: &Path) -> Vec<PathBuf> {
    let parts = TOOLS.iter().flat_map(|tool| {
        let directory = home.join(tool.directory);
        tool.parts.iter().map(move |part| directory.join(part))
    });
    parts.filter(|part| part.exists()).chain(user_sites(home)).collect()
}

/// Where `pip install --user` puts packages: one directory for each version of Python.
fn user_sites(home: &Path) -> Vec<PathBuf> {
    let versions = fs::read_dir(home.join(".local/lib")).into_iter().flatten().flatten();
    let pythons = versions.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"python"));
    pythons.map(|entry| entry.path().join("site-packages")).filter(|site| site.is_dir()).collect()
}

/// The directories outside of /usr and the home that PATH leads into, absolute.
pub(crate) fn on_path(path: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = path.split(':').filter_map(|entry| tool_root(Path::new(entry))).collect();
    found.sort();
    found.dedup();
    found
}

/// `/opt/node-22/bin` belongs to `/opt/node-22`; for other prefixes, to the prefix itself.
fn tool_root(entry: &Path) -> Option<PathBuf> {
    let plain = entry.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !plain || !entry.is_dir() {
        return None;
    }
    let prefix =
        PREFIXES.iter().map(Path::new).find(|prefix| entry.starts_with(prefix) && entry != *prefix)?;
    if prefix != Path::new("/opt") {
        return Some(prefix.to_path_buf());
    }
    let name = entry.strip_prefix(prefix).ok()?.components().next()?;
    Some(prefix.join(name))
}

/// The PATH inside: the entries of the host's PATH that lie under one of `visible`, then the standard ones.
pub(crate) fn path_inside(path: &str, visible: &[PathBuf]) -> String {
    let mut entries: Vec<&str> = Vec::new();
    for entry in path.split(':').chain(STANDARD_PATH.iter().copied()) {
        let is_visible = visible.iter().any(|part| Path::new(entry).starts_with(part));
        if is_visible && Path::new(entry).is_dir() && !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries.join(":")
}
