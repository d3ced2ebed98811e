//! What cargo says of the workspace: its packages, what each declares, and what that was resolved to.

use crate::cargo;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What `cargo metadata` prints, as far as it is read.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Every package of the workspace and of its dependencies.
    pub packages: Vec<Package>,
    resolve: Resolve,
}

/// A package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name in this output.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The expression of its licences (SPDX).
    pub license: Option<String>,
    /// Where it was fetched from; none for what lies in this repository.
    pub source: Option<String>,
    /// The dependencies that its manifest declares.
    pub dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// None for a normal one, else `dev` or `build`.
    pub kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Debug, Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Debug, Deserialize)]
struct DepKind {
    kind: Option<String>,
}

impl Metadata {
    /// Asks cargo, for the machine that releases are for.
    pub fn read() -> Result<Self> {
        let output = cargo(&["metadata", "--format-version", "1", "--locked"])
            .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
            .output()?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("cargo metadata cannot be read")
    }

    /// The packages that lie in this repository.
    pub fn house(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }

    /// What a package is built from and with, itself too, and what each of those uses; tests' dependencies
    /// are not in it.
    pub fn used<'a>(&'a self, package: &'a Package) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let mut used = BTreeMap::new();
        let mut open = vec![package.id.as_str()];
        while let Some(id) = open.pop() {
            if used.contains_key(id) {
                continue;
            }
            let deps = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
            let needed = |dep: &&Dep| dep.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"));
            let deps: BTreeSet<&str> = deps.iter().filter(needed).map(|dep| dep.pkg.as_str()).collect();
            open.extend(&deps);
            used.insert(id, deps);
        }
        used
    }
}
