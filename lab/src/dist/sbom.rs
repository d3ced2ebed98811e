//! The bill of materials: every crate that the program is made of, as SPDX 2.3 in JSON
//! (spdx.github.io/spdx-spec/v2.3).

use super::{epoch, output, version};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use xtask::{
    metadata::{Metadata, Package},
    root,
};

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes `bailey.spdx.json`.
pub(super) fn write(out: &Path) -> Result<PathBuf> {
    let metadata = Metadata::read()?;
    let lock: Lock = toml::from_str(&fs::read_to_string(root().join("Cargo.lock"))?)?;
    let file = out.join("bailey.spdx.json");
    let text = serde_json::to_string_pretty(&document(&metadata, &lock, &created()?)?)?;
    fs::write(&file, text + "\n")?;
    Ok(file)
}

/// The last commit's time, as SPDX writes it.
fn created() -> Result<String> {
    output("date", &["-u", "-d", &format!("@{}", epoch()?), "+%Y-%m-%dT%H:%M:%SZ"])
}

fn document(metadata: &Metadata, lock: &Lock, created: &str) -> Result<Value> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let program = metadata.packages.iter().find(|package| package.name == "bailey").context("no `bailey`")?;
    let used = metadata.used(program);
    let sums: BTreeMap<(&str, &str), &str> = lock
        .package
        .iter()
        .filter_map(|locked| Some(((&*locked.name, &*locked.version), locked.checksum.as_deref()?)))
        .collect();
    let mut listed = Vec::new();
    let mut relations = vec![json!({
        "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": name(program),
    })];
    for (id, uses) in &used {
        let Some(package) = packages.get(id) else { continue };
        listed.push(described(package, sums.get(&(&*package.name, &*package.version)).copied()));
        relations.extend(uses.iter().filter_map(|other| packages.get(other)).map(|other| {
            json!({ "spdxElementId": name(package), "relationshipType": "DEPENDS_ON", "relatedSpdxElement": name(other) })
        }));
    }
    println!("{} crates in the program", listed.len());
    Ok(json!({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("bailey-{}", version()),
        "documentNamespace": format!("https://example.invalid/bailey/spdx/{}-{created}", version()),
        "creationInfo": { "created": created, "creators": ["Tool: cargo xtask dist"] },
        "packages": listed, "relationships": relations,
    }))
}

fn described(package: &Package, checksum: Option<&str>) -> Value {
    let license = package
        .license
        .as_deref()
        .map(|it| it.split('/').map(str::trim).collect::<Vec<_>>().join(" OR "))
        .unwrap_or("NOASSERTION".into());
    let purl = format!("pkg:cargo/{}@{}", package.name, package.version);
    let registry = package.source.iter().map(
        |_| json!({ "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl }),
    );
    let sums = checksum.iter().map(|sum| json!({ "algorithm": "SHA256", "checksumValue": sum }));
    json!({
        "SPDXID": name(package), "name": package.name, "versionInfo": package.version,
        "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
        "licenseConcluded": license, "licenseDeclared": license, "copyrightText": "NOASSERTION",
        "externalRefs": registry.collect::<Vec<_>>(), "checksums": sums.collect::<Vec<_>>(),
    })
}

/// The name of a package in the document: letters, digits, dots and hyphens only.
fn name(package: &Package) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    format!("SPDXRef-{}-{}", package.name, package.version).chars().map(plain).collect()
}

#[cfg(test)]
mod tests;
