//! Which parts of the host's tools a sandbox may read: an allow-list, part by part.
//!
//! A directory of the home is bound whole only where a tool keeps no credentials in it, for most do beside
//! their programs (`~/.cargo/credentials.toml` lies beside `~/.cargo/bin`). The packages that package
//! managers fetched are among the parts: without a network nothing else can be built with.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A tool's directory below the home, and the parts of it that are program or fetched source: `.` for the
/// directory itself, `*` for each directory in it.
struct Tool {
    directory: &'static str,
    parts: &'static [&'static str],
}

/// Version managers that are laid out as rbenv is.
const OF_RBENV: &[&str] = &["bin", "libexec", "shims", "versions", "version", "plugins"];
/// A distribution of conda, whose own settings, with tokens of channels, lie beside these.
const OF_CONDA: &[&str] = &[
    "bin",
    "condabin",
    "conda-meta",
    "envs",
    "etc",
    "include",
    "lib",
    "lib64",
    "libexec",
    "pkgs",
    "share",
    "shell",
    "ssl",
    "x86_64-conda-linux-gnu",
];

const TOOLS: &[Tool] = &[
    // Programs of the user's own, of any kind.
    Tool { directory: "bin", parts: &["."] },
    Tool { directory: ".local", parts: &["bin", "opt", "pipx/venvs", "pipx/shared", "pipx/py"] },
    Tool { directory: ".local/lib", parts: &["node_modules"] },
    // Several languages.
    Tool { directory: ".asdf", parts: &["bin", "lib", "shims", "installs", "plugins"] },
    Tool { directory: ".local/share/mise", parts: &["shims", "installs", "plugins"] },
    Tool { directory: ".proto", parts: &["bin", "shims", "tools"] },
    Tool { directory: ".sdkman", parts: &["bin", "src", "libexec", "candidates"] },
    Tool { directory: ".nix-profile", parts: &["."] },
    Tool { directory: ".local/state/nix", parts: &["profile", "profiles"] },
    Tool { directory: ".pixi", parts: &["bin", "envs"] },
    Tool { directory: "Android", parts: &["Sdk"] },
    // Rust.
    Tool { directory: ".cargo", parts: &["bin", "registry", "git"] },
    Tool { directory: ".rustup", parts: &["toolchains", "settings.toml"] },
    // Python.
    Tool {
        directory: ".pyenv",
        parts: &["bin", "libexec", "shims", "versions", "version", "pyenv.d", "plugins"],
    },
    Tool { directory: ".local/share/uv", parts: &["python", "tools"] },
    Tool { directory: ".local/share/pipx", parts: &["venvs", "shared", "py"] },
    Tool { directory: ".local/share/virtualenvs", parts: &["."] },
    Tool { directory: ".virtualenvs", parts: &["."] },
    Tool {
        directory: ".cache",
        parts: &["pip", "pypoetry/virtualenvs", "pypoetry/artifacts", "pypoetry/cache"],
    },
    // It works in its own root, and not without.
    Tool { directory: ".cache/uv", parts: &["*"] },
    Tool { directory: ".rye", parts: &["shims", "py", "toolchains", "uv", "self"] },
    Tool { directory: "miniconda3", parts: OF_CONDA },
    Tool { directory: "miniconda", parts: OF_CONDA },
    Tool { directory: "anaconda3", parts: OF_CONDA },
    Tool { directory: "miniforge3", parts: OF_CONDA },
    Tool { directory: "mambaforge", parts: OF_CONDA },
    Tool { directory: "micromamba", parts: OF_CONDA },
    Tool { directory: ".conda", parts: &["envs", "pkgs"] },
    Tool { directory: ".mamba", parts: &["envs", "pkgs"] },
    // JavaScript.
    Tool { directory: ".npm", parts: &["_cacache"] },
    Tool { directory: ".npm-global", parts: &["bin", "lib"] },
    Tool { directory: ".npm-packages", parts: &["bin", "lib"] },
    Tool { directory: ".nvm", parts: &["versions", "alias", "nvm.sh", "nvm-exec", "bash_completion"] },
    Tool { directory: ".volta", parts: &["bin", "tools"] },
    Tool { directory: ".fnm", parts: &["node-versions", "aliases"] },
    Tool { directory: ".local/share/fnm", parts: &["node-versions", "aliases"] },
    Tool { directory: ".local/state", parts: &["fnm_multishells"] },
    Tool { directory: ".nodenv", parts: OF_RBENV },
    Tool { directory: ".bun", parts: &["bin", "install/cache", "install/global"] },
    Tool { directory: ".deno", parts: &["bin"] },
    Tool { directory: ".cache/deno", parts: &["deps", "npm", "remote"] },
    Tool { directory: ".local/share/pnpm", parts: &["."] },
    Tool { directory: ".pnpm-store", parts: &["."] },
    Tool { directory: ".cache", parts: &["yarn"] },
    Tool { directory: ".yarn", parts: &["bin", "berry/cache", "berry/index"] },
    Tool { directory: ".config/yarn/global", parts: &["node_modules"] },
    // Go.
    Tool { directory: "go", parts: &["bin", "pkg/mod"] },
    Tool { directory: ".goenv", parts: OF_RBENV },
    // Java and its kin.
    Tool { directory: ".m2", parts: &["repository", "wrapper/dists"] },
    Tool { directory: ".gradle", parts: &["caches", "jdks", "wrapper/dists"] },
    Tool { directory: ".jenv", parts: OF_RBENV },
    Tool { directory: ".jdks", parts: &["."] },
    Tool { directory: ".cache", parts: &["coursier"] },
    Tool { directory: ".coursier", parts: &["cache"] },
    Tool { directory: ".local/share/coursier", parts: &["."] },
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
    Tool { directory: ".bundle", parts: &["cache", "plugin"] },
    Tool { directory: ".composer", parts: &["cache", "vendor"] },
    Tool { directory: ".config/composer", parts: &["vendor"] },
    Tool { directory: ".cache", parts: &["composer"] },
    // Others.
    Tool { directory: ".ghcup", parts: &["bin", "ghc", "cabal", "hls", "stack"] },
    Tool { directory: ".stack", parts: &["pantry", "programs", "snapshots"] },
    Tool { directory: ".cabal", parts: &["bin", "lib", "packages", "share", "store"] },
    Tool { directory: ".cache/cabal", parts: &["packages"] },
    Tool { directory: ".local/state/cabal", parts: &["store"] },
    Tool { directory: ".opam", parts: &["."] },
    Tool { directory: ".elan", parts: &["bin", "toolchains"] },
    Tool { directory: ".mix", parts: &["archives", "elixir", "escripts"] },
    Tool { directory: ".hex", parts: &["packages"] },
    Tool { directory: ".cache/rebar3", parts: &["bin", "hex", "plugins"] },
    Tool { directory: ".pub-cache", parts: &["bin", "git", "global_packages", "hosted"] },
    Tool { directory: ".julia", parts: &["artifacts", "bin", "compiled", "packages", "registries"] },
    Tool { directory: ".juliaup", parts: &["bin"] },
    Tool { directory: "R", parts: &["x86_64-pc-linux-gnu-library", "aarch64-unknown-linux-gnu-library"] },
    Tool { directory: "perl5", parts: &["bin", "lib"] },
    Tool { directory: ".luarocks", parts: &["bin", "lib", "share"] },
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
        tool.parts.iter().flat_map(move |part| match *part {
            "." => vec![directory.clone()],
            "*" => directories(&directory),
            part => vec![directory.join(part)],
        })
    });
    parts.filter(|part| part.exists()).chain(user_sites(home)).collect()
}

fn directories(above: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(above).into_iter().flatten().flatten().map(|entry| entry.path());
    found.filter(|path| path.is_dir() && !path.is_symlink()).collect()
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
