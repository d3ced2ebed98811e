//! Which parts of the host's tools a sandbox may read: an allow-list, part by part.
//!
//! A directory of the home is bound whole only where a tool keeps no settings in it, for most do beside their
//! programs (`~/.cargo/credentials.toml` lies beside `~/.cargo/bin`, `pip.conf` beside the `bin` of each
//! environment). What package managers fetched is among the parts: without a network nothing else can be
//! built with. A cache that holds addresses with passwords in them, or settings between what it fetched, is
//! not.

use crate::mask::Masks;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A tool's directory below the home, and what of it is program or fetched source: `.` for the directory
/// itself, `*` for each entry that has the name of no settings
/// ([`SETTINGS`], [`OF_SETTINGS`]).
struct Tool {
    directory: &'static str,
    parts: &'static [&'static str],
}

/// Names of files with settings among a tool's own, in gitignore syntax, besides those of secrets.
pub(crate) const SETTINGS: &[&str] = &[
    // docs.npmjs.com/cli/configuring-npm/npmrc; pip.pypa.io/en/stable/topics/configuration.
    "npmrc",
    "pip.conf",
    "pip.ini",
    // docs.conda.io: variables of an environment, channels with tokens.
    "conda-meta/state",
    "env_vars.sh",
    ".condarc",
    "pipx_metadata.json",
    "uv-receipt.toml",
    // virtualenvwrapper.readthedocs.io/en/latest/scripts.html.
    "postactivate",
    "postdeactivate",
    "preactivate",
    "predeactivate",
    // docs.gradle.org: properties of an installation, and the key of its configuration cache.
    "gradle.properties",
    "gradle.keystore",
    // The configuration of a clone has the address that it came from, with what logs in there.
    "**/.git/config",
    "**/.git/fetch_head",
    // Tokens and passwords of any tool.
    "*.token",
    ".token",
    "auth.json",
    "auth.toml",
    ".credentials",
    "credentials",
    "credentials.toml",
    "credentials.xml",
    "credentials.yaml",
    "credentials.yml",
];

/// Directories of settings, which are not shown where `*` stands.
pub(crate) const OF_SETTINGS: &[&str] = &[
    "etc/",
    // What made an environment of conda names its channels; environments themselves are looked at one by one.
    "conda-meta/",
    "envs/",
    // docs.gradle.org; maven.apache.org/settings.html: the settings of an installation.
    "cc-keystore/",
    "init.d/",
    "**/maven/*/conf/",
    // Clones, with the addresses that they came from.
    "git/",
    "git-v*/",
    "vcs/",
];

/// Version managers that are laid out as rbenv is.
const OF_RBENV: &[&str] = &["bin", "libexec", "shims", "versions/*/*", "version", "plugins/*/*"];
/// A distribution of conda.
const OF_CONDA: &[&str] = &[
    "bin",
    "condabin",
    "envs/*/*",
    "etc/profile.d/conda.sh",
    "etc/profile.d/mamba.sh",
    "include",
    "lib",
    "lib64",
    "libexec",
    "share",
    "shell",
    "ssl",
    "x86_64-conda-linux-gnu",
];
/// Environments of Python, but for their programs, beside which lie scripts of the person's.
const OF_VIRTUALENVS: &[&str] = &["*/include", "*/lib", "*/lib64", "*/pyvenv.cfg", "*/share"];

/// Directories into which a person puts what they like, so all of it is looked through, and secrets are
/// masked.
const OWN: &[Tool] = &[
    Tool { directory: "bin", parts: &["."] },
    Tool { directory: ".local", parts: &["bin", "opt"] },
    Tool { directory: ".local/share/virtualenvs", parts: &["*/bin"] },
    Tool { directory: ".virtualenvs", parts: &["*/bin"] },
];

const TOOLS: &[Tool] = &[
    Tool { directory: ".local/pipx", parts: &["venvs/*/*", "shared/*", "py/*/*"] },
    Tool { directory: ".local/lib", parts: &["node_modules"] },
    // Several languages.
    Tool { directory: ".asdf", parts: &["bin", "lib", "shims", "installs/*/*/*", "plugins/*/*"] },
    Tool { directory: ".local/share/mise", parts: &["shims", "installs/*/*/*", "plugins/*/*"] },
    Tool { directory: ".proto", parts: &["bin", "shims", "tools/*/*/*"] },
    Tool { directory: ".sdkman", parts: &["bin", "src", "libexec", "candidates/*/*/*"] },
    Tool { directory: ".nix-profile", parts: &["."] },
    Tool { directory: ".local/state/nix", parts: &["profile", "profiles"] },
    Tool { directory: ".pixi", parts: &["bin", "envs/*/*"] },
    Tool { directory: "Android", parts: &["Sdk"] },
    // Rust.
    Tool { directory: ".cargo", parts: &["bin", "registry", "git"] },
    Tool { directory: ".rustup", parts: &["toolchains", "settings.toml"] },
    // Python.
    Tool {
        directory: ".pyenv",
        parts: &[
            "bin",
            "libexec",
            "shims",
            "versions/*/*",
            "versions/*/envs/*/*",
            "version",
            "pyenv.d",
            "plugins/*/*",
        ],
    },
    Tool { directory: ".local/share/uv", parts: &["python/*/*", "tools/*/*"] },
    Tool { directory: ".local/share/pipx", parts: &["venvs/*/*", "shared/*", "py/*/*"] },
    Tool { directory: ".local/share/virtualenvs", parts: OF_VIRTUALENVS },
    Tool { directory: ".virtualenvs", parts: OF_VIRTUALENVS },
    Tool {
        directory: ".cache",
        parts: &["pip", "pypoetry/virtualenvs/*/*", "pypoetry/artifacts", "pypoetry/cache"],
    },
    // It works in its own root, and not without; clones of repositories have addresses in them.
    Tool { directory: ".cache/uv", parts: &["*"] },
    Tool { directory: ".rye", parts: &["shims", "py/*/*", "toolchains/*/*", "uv/*/*", "self/*"] },
    Tool { directory: "miniconda3", parts: OF_CONDA },
    Tool { directory: "miniconda", parts: OF_CONDA },
    Tool { directory: "anaconda3", parts: OF_CONDA },
    Tool { directory: "miniforge3", parts: OF_CONDA },
    Tool { directory: "mambaforge", parts: OF_CONDA },
    Tool { directory: "micromamba", parts: OF_CONDA },
    Tool { directory: ".conda", parts: &["envs/*/*"] },
    Tool { directory: ".mamba", parts: &["envs/*/*"] },
    // JavaScript.
    Tool { directory: ".npm", parts: &["_cacache"] },
    Tool { directory: ".npm-global", parts: &["bin", "lib/node_modules"] },
    Tool { directory: ".npm-packages", parts: &["bin", "lib/node_modules"] },
    Tool { directory: ".nvm", parts: &["versions/*/*/*", "alias", "nvm.sh", "nvm-exec", "bash_completion"] },
    Tool { directory: ".volta", parts: &["bin", "tools/image/*/*/*", "tools/user"] },
    Tool { directory: ".fnm", parts: &["node-versions/*/installation/*", "aliases"] },
    Tool { directory: ".local/share/fnm", parts: &["node-versions/*/installation/*", "aliases"] },
    Tool { directory: ".local/state", parts: &["fnm_multishells"] },
    Tool { directory: ".nodenv", parts: OF_RBENV },
    Tool { directory: ".bun", parts: &["bin", "install/cache", "install/global/node_modules"] },
    Tool { directory: ".deno", parts: &["bin"] },
    Tool { directory: ".cache/deno", parts: &["deps", "npm", "remote"] },
    Tool {
        directory: ".local/share/pnpm",
        parts: &["bin", "global/*/.pnpm", "global/*/node_modules", "nodejs/*/*", "pnpm", "pnpx", "store"],
    },
    Tool { directory: ".pnpm-store", parts: &["."] },
    Tool { directory: ".cache", parts: &["yarn"] },
    Tool { directory: ".yarn", parts: &["bin", "berry/cache", "berry/index"] },
    Tool { directory: ".config/yarn/global", parts: &["node_modules"] },
    // Go.
    Tool { directory: "go", parts: &["bin", "pkg/mod"] },
    Tool { directory: ".goenv", parts: OF_RBENV },
    // Java and its kin.
    Tool { directory: ".m2", parts: &["repository", "wrapper/dists"] },
    Tool { directory: ".gradle", parts: &["caches/modules-2", "jdks/*/*", "wrapper/dists/*/*/*/*"] },
    Tool { directory: ".jenv", parts: &["bin", "libexec", "shims", "versions", "version"] },
    Tool { directory: ".jdks", parts: &["."] },
    Tool { directory: ".cache", parts: &["coursier"] },
    Tool { directory: ".coursier", parts: &["cache"] },
    Tool { directory: ".local/share/coursier", parts: &["bin"] },
    Tool { directory: ".ivy2", parts: &["cache", "local"] },
    Tool { directory: ".sbt", parts: &["boot", "launchers"] },
    // .NET.
    Tool {
        directory: ".dotnet",
        parts: &["dotnet", "host", "packs", "sdk", "sdk-manifests", "shared", "templates", "tools"],
    },
    Tool { directory: ".nuget", parts: &["packages"] },
    // Ruby and PHP.
    Tool { directory: ".rbenv", parts: OF_RBENV },
    Tool {
        directory: ".rvm",
        parts: &["bin", "environments", "gems", "lib", "rubies", "scripts", "wrappers"],
    },
    Tool { directory: ".rubies", parts: &["."] },
    Tool { directory: ".gem", parts: &["ruby", "specs"] },
    Tool { directory: ".local/share/gem", parts: &["ruby", "specs"] },
    Tool { directory: ".bundle", parts: &["cache/*", "plugin"] },
    Tool { directory: ".composer", parts: &["cache/*", "vendor"] },
    Tool { directory: ".config/composer", parts: &["vendor"] },
    Tool { directory: ".cache/composer", parts: &["*"] },
    // Others.
    Tool { directory: ".ghcup", parts: &["bin", "ghc", "cabal", "hls", "stack"] },
    Tool { directory: ".stack", parts: &["pantry", "programs", "snapshots"] },
    Tool { directory: ".cabal", parts: &["bin", "lib", "packages", "share", "store"] },
    Tool { directory: ".cache/cabal", parts: &["packages"] },
    Tool { directory: ".local/state/cabal", parts: &["store"] },
    Tool { directory: ".opam", parts: &["*/bin", "*/lib", "*/libexec", "*/sbin", "*/share"] },
    Tool { directory: ".elan", parts: &["bin", "toolchains"] },
    Tool { directory: ".mix", parts: &["archives", "elixir", "escripts"] },
    Tool { directory: ".hex", parts: &["packages"] },
    Tool { directory: ".cache/rebar3", parts: &["bin", "hex", "plugins"] },
    Tool { directory: ".pub-cache", parts: &["bin", "global_packages", "hosted"] },
    Tool { directory: ".julia", parts: &["artifacts", "bin", "compiled", "packages"] },
    Tool { directory: ".juliaup", parts: &["bin"] },
    Tool { directory: "R", parts: &["x86_64-pc-linux-gnu-library", "aarch64-unknown-linux-gnu-library"] },
    Tool { directory: "perl5", parts: &["bin", "lib"] },
    Tool { directory: ".luarocks", parts: &["bin", "lib", "share"] },
];

/// Directories outside of /usr that hold one tool each; what PATH names below them is bound with its
/// siblings.
const PREFIXES: &[&str] = &["/opt", "/nix", "/home/linuxbrew/.linuxbrew", "/var/lib/snapd"];

/// Where programs are looked for after what the host's PATH names.
const STANDARD_PATH: &[&str] =
    &["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/// The parts of tools that are there and hold no settings, absolute.
pub(crate) fn in_home(home: &Path, settings: &Masks) -> Vec<PathBuf> {
    parts(TOOLS, home, settings).chain(user_sites(home)).collect()
}

/// The directories of the person's own programs that are there, absolute: what looks like a secret in them is
/// to be masked.
pub(crate) fn own_in_home(home: &Path, settings: &Masks) -> Vec<PathBuf> {
    parts(OWN, home, settings).collect()
}

fn parts<'a>(
    tools: &'static [Tool],
    home: &'a Path,
    settings: &'a Masks,
) -> impl Iterator<Item = PathBuf> + 'a {
    tools.iter().flat_map(move |tool| {
        let directory = home.join(tool.directory);
        tool.parts.iter().flat_map(move |part| matching(&directory, part, settings))
    })
}

/// What is there in a tool's directory by a name with `*` in it.
fn matching(directory: &Path, part: &str, settings: &Masks) -> Vec<PathBuf> {
    let names = part.split('/').filter(|name| *name != ".");
    let found = names.fold(vec![directory.to_path_buf()], |found, name| match name {
        "*" => found.iter().flat_map(|above| entries(above, directory, settings)).collect(),
        name => found.into_iter().map(|above| above.join(name)).collect(),
    });
    found.into_iter().filter(|path| path.exists()).collect()
}

/// The entries of a directory but for settings, hidden files, and links that lead out of the tool.
fn entries(above: &Path, tool: &Path, settings: &Masks) -> Vec<PathBuf> {
    let found = fs::read_dir(above).into_iter().flatten().flatten();
    let is_shown = |path: &PathBuf| {
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let stays = || {
            fs::canonicalize(path)
                .is_ok_and(|real| fs::canonicalize(tool).is_ok_and(|tool| real.starts_with(tool)))
        };
        !is_hidden && !settings.is_named(path) && (!path.is_symlink() || stays())
    };
    found.map(|entry| entry.path()).filter(is_shown).collect()
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
    // A link of the home, such as a profile of nix, leads to one as well.
    let entry = &fs::canonicalize(entry).ok().filter(|entry| entry.is_dir())?;
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
    let is_visible = |entry: &Path| visible.iter().any(|part| entry.starts_with(part));
    let mut entries: Vec<String> = Vec::new();
    for entry in path.split(':').chain(STANDARD_PATH.iter().copied()) {
        let at = Path::new(entry);
        let real = fs::canonicalize(at).ok().filter(|real| real.is_dir());
        // As the person writes it, which may be through a link that is not there inside.
        let shown = match real {
            Some(_) if is_visible(at) => entry.to_owned(),
            Some(real) if is_visible(&real) => real.display().to_string(),
            _ => continue,
        };
        if !entries.contains(&shown) {
            entries.push(shown);
        }
    }
    entries.join(":")
}
