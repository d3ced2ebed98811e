//! Words of a rule file that stand for several: groups of hosts, as data, and repositories of git.

use super::model::{Spelled, choose};
use crate::{HostGlob, UrlGlob};
use std::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

/// One host, or a group of them.
pub(super) struct Hosts(pub(super) Vec<HostGlob>);

/// Where git fetches from a repository over HTTP (its `http-protocol`), by `GET` and by `POST`: to push it
/// asks for another service.
pub(super) struct Repository(pub(super) Vec<UrlGlob>);

/// Groups of hosts that a rule can name as `@NAME`.
const GROUPS: &[(&str, &[&str])] = &[
    (
        // Where the usual package managers look by themselves, and where those lead them.
        "packages",
        &[
            "pypi.org",
            "files.pythonhosted.org",
            "registry.npmjs.org",
            "registry.yarnpkg.com",
            "jsr.io",
            "npm.jsr.io",
            "index.crates.io",
            "static.crates.io",
            "crates.io",
            "proxy.golang.org",
            "sum.golang.org",
            "rubygems.org",
            "index.rubygems.org",
            "repo.maven.apache.org",
            "repo1.maven.org",
            "plugins.gradle.org",
            "repo.packagist.org",
            "hex.pm",
            "repo.hex.pm",
            "deb.debian.org",
            "archive.ubuntu.com",
            "security.ubuntu.com",
            "dl-cdn.alpinelinux.org",
        ],
    ),
    ("git", &["github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht"]),
];

impl Spelled for Hosts {
    const WHAT: &'static str = "a host, or a group of hosts such as `@packages`";
    fn read(text: &str) -> Result<Self, String> {
        if let Some(group) = text.strip_prefix('@') {
            let groups = GROUPS.iter().map(|(name, hosts)| (*name, *hosts));
            let hosts = choose("group of hosts", group, groups)?.iter().map(|name| HostGlob::new(name));
            return hosts.collect::<Result<_, _>>().map(Self).map_err(|error| error.to_string());
        }
        HostGlob::new(text).map(|host| Self(vec![host])).map_err(|error| error.to_string())
    }
}

impl Spelled for Repository {
    const WHAT: &'static str = "a repository of git";
    fn read(text: &str) -> Result<Self, String> {
        let bare = text.trim_matches('/');
        let bare = bare.strip_suffix(".git").unwrap_or(bare);
        if bare.is_empty() || bare.contains('?') {
            return Err(format!("`{text}` is no repository: write `owner/name`, or `owner/*`"));
        }
        let path = |tail: &str| UrlGlob::new(&format!("/{bare}{tail}"));
        let pages = ["/info/refs?service=git-upload-pack", "/git-upload-pack"];
        let all = ["", ".git"].into_iter().flat_map(|end| pages.map(|page| format!("{end}{page}")));
        all.map(|tail| path(&tail))
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|error| format!("`{text}`: {error}"))
    }
}
