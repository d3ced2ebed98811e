//! What cargo says of the workspace: its packages, what each declares, and what that was resolved to.

use crate::cargo;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Where it was fetched from; none for what lies in this repository.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// None for a normal one, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    kind: Option<String>,
}

impl Metadata {
    /// Asks cargo, for the machine that releases are for.
    pub(crate) fn read() -> Result<Self> {
        let output = cargo(&["metadata", "--format-version", "1", "--locked"])
            .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
            .output()?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("cargo metadata cannot be read")
    }

    /// The packages that lie in this repository.
    pub(crate) fn house(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }

    /// What a package is built from and with, itself too, and what each of those uses; tests' dependencies
    /// are not in it.
    pub(crate) fn used<'a>(&'a self, package: &'a Package) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
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
