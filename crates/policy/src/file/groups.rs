//! Groups of hosts, as data.

/// Groups of hosts that a rule can name as `@NAME`.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
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
