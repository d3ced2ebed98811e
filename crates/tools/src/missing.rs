//! What to tell model and human when a command failed because a package is not here: a package manager's own
//! words speak of retries and resolvers, and the way out lies outside the walls.
//!
//! The command that is named is one of ours, never made of the output: who writes the output would otherwise
//! choose what the human installs.

/// A package manager: what it says when it would have to fetch something, and what the human runs outside.
struct Manager {
    marks: &'static [&'static str],
    fetch: &'static str,
}

/// A mark that ends in a quote is followed by a package's name, not by a path.
const MANAGERS: &[Manager] = &[
    Manager {
        marks: &[
            "Could not resolve host: index.crates.io",
            "Could not resolve host: static.crates.io",
            "download of config.json failed",
            "--offline was specified",
            "retry without `--offline`",
        ],
        fetch: "cargo fetch",
    },
    Manager {
        marks: &["ENOTCACHED", "EAI_AGAIN", "Cannot find package '", "Cannot find module '"],
        fetch: "npm install",
    },
    Manager {
        marks: &["proxy.golang.org", "module lookup disabled by GOPROXY=off"],
        fetch: "go mod download",
    },
    Manager {
        marks: &[
            "in offline mode and the artifact",
            "Unknown host repo.maven.apache.org",
            "repo.maven.apache.org: Temporary failure in name resolution",
            "repo.maven.apache.org: Name or service not known",
        ],
        fetch: "mvn dependency:go-offline",
    },
    Manager {
        marks: &["No matching distribution found for", ": No module named "],
        fetch: "python3 -m pip install -r requirements.txt",
    },
];

/// The command that fetches what a failed command lacked, going by what it printed.
pub(crate) fn fetch(printed: &str) -> Option<&'static str> {
    let says =
        |mark: &str| printed.match_indices(mark).any(|(at, _)| names(mark, printed.get(at + mark.len()..)));
    MANAGERS.iter().find(|manager| manager.marks.iter().any(|mark| says(mark))).map(|manager| manager.fetch)
}

fn names(mark: &str, rest: Option<&str>) -> bool {
    let first = rest.and_then(|rest| rest.chars().next());
    !mark.ends_with('\'') || first.is_some_and(|first| first.is_alphanumeric() || first == '@')
}
