//! What package managers fetched is there to build with, and the tokens beside it are not; what is missing is
//! named.

use super::{has, session};
use crate::stage::{Ran, Stage};
use serde_json::json;
use std::{fs, path::PathBuf, process::Command};

/// One file of each cache, below the home.
const FETCHED: &[&str] = &[
    ".cargo/registry/cache/index.crates.io-0/x-1.0.0.crate",
    ".cargo/registry/index/index.crates.io-0/.cache/x",
    ".cargo/registry/src/index.crates.io-0/x-1.0.0/src/lib.rs",
    ".cargo/git/checkouts/x-0/0/src/lib.rs",
    ".cache/pip/wheels/x.whl",
    ".cache/pypoetry/virtualenvs/x-py3/bin/python",
    ".local/lib/python3.11/site-packages/x/__init__.py",
    ".npm/_cacache/content-v2/sha512/x",
    "go/pkg/mod/example.com/x@v1.0.0/x.go",
    ".m2/repository/com/example/x/1.0/x-1.0.jar",
    ".local/bin/x",
    ".local/share/pipx/venvs/x/bin/x",
    ".local/pipx/venvs/x/bin/x",
    ".local/share/uv/tools/x/bin/x",
    ".cache/uv/wheels-v0/x.whl",
    ".gradle/caches/modules-2/files-2.1/x.jar",
    ".gradle/wrapper/dists/gradle-8-bin/x/gradle-8/bin/gradle",
    "miniconda3/bin/conda",
    "miniforge3/envs/x/bin/python",
    ".asdf/installs/x/1/bin/x",
    ".local/share/mise/installs/x/1/bin/x",
    ".nvm/versions/node/v1/bin/node",
    ".local/share/fnm/node-versions/v1/installation/bin/node",
    ".bun/install/cache/x/index.js",
    ".local/share/pnpm/store/v3/files/00/x",
    ".cache/yarn/v6/npm-x/package.json",
    ".nuget/packages/x/1.0.0/x.nupkg",
    ".dotnet/tools/x",
    ".cache/coursier/v1/https/x.jar",
    ".ivy2/cache/x/ivy.xml",
    ".sbt/boot/x.jar",
    ".bundle/cache/x.gem",
    ".gem/ruby/3.1.0/gems/x/x.rb",
    ".cache/composer/files/x.zip",
    ".composer/vendor/bin/x",
    ".sdkman/candidates/java/current/bin/java",
    ".pub-cache/hosted/pub.dev/x/pubspec.yaml",
    ".hex/packages/hexpm/x.tar",
    ".stack/snapshots/x",
    ".cabal/packages/x",
    ".opam/default/bin/ocaml",
    // What lies beside the tokens below, or would be taken for one by less than its whole name.
    "bin/tool",
    "bin/lib/code.py",
    ".local/opt/app/bin/app",
    ".local/opt/app/lib/data.json",
    ".virtualenvs/e/bin/activate",
    ".virtualenvs/e/lib/python3/site-packages/x.py",
    ".virtualenvs/e/pyvenv.cfg",
    ".local/share/virtualenvs/e/bin/python",
    "miniconda3/envs/e/lib/x.so",
    "miniconda3/etc/profile.d/conda.sh",
    ".nvm/versions/node/v1/lib/node_modules/npm/index.js",
    ".local/share/pipx/venvs/x/pyvenv.cfg",
    ".opam/default/lib/ocaml/stdlib.cma",
    ".pyenv/versions/3.1/bin/python",
    ".pyenv/versions/3.1/envs/e/bin/python",
    ".pyenv/plugins/x/bin/x",
    ".asdf/plugins/x/bin/install",
    ".sdkman/candidates/maven/3/bin/mvn",
];

/// Tokens that lie beside them.
const TOKENS: &[&str] = &[
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".npmrc",
    ".npm/_logs/debug.log",
    ".pypirc",
    ".config/pip/pip.conf",
    ".cache/pypoetry/auth.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".config/go/env",
    ".local/lib/token",
    ".netrc",
    ".gradle/gradle.properties",
    ".gradle/init.d/x.gradle",
    ".nuget/NuGet/NuGet.Config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".bundle/config",
    ".gem/credentials",
    ".ivy2/.credentials",
    ".sbt/1.0/credentials.sbt",
    ".hex/hex.config",
    ".pub-cache/credentials.json",
    ".cabal/config",
    "miniconda3/.condarc",
    ".config/pnpm/rc",
    ".yarnrc.yml",
    ".dotnet/corefx/cryptography/x509stores/my/x.pfx",
    ".opam/plugins/opam-publish/x.token",
    ".opam/log/log-1.env",
    ".opam/repo/repos-config",
    "miniconda3/envs/e/conda-meta/state",
    "miniconda3/envs/e/etc/conda/activate.d/env_vars.sh",
    "miniconda3/envs/e/pip.conf",
    "miniconda3/conda-meta/history",
    "miniconda3/etc/conda/activate.d/env_vars.sh",
    "miniconda3/pkgs/urls.txt",
    ".conda/envs/e/conda-meta/state",
    ".pixi/envs/e/conda-meta/state",
    ".gradle/caches/8.1/cc-keystore/gradle.keystore",
    ".gradle/wrapper/dists/gradle-8-bin/x/gradle-8/init.d/x.gradle",
    ".virtualenvs/postactivate",
    ".virtualenvs/predeactivate",
    ".virtualenvs/e/bin/postactivate",
    ".virtualenvs/e/bin/predeactivate",
    ".virtualenvs/e/pip.conf",
    ".virtualenvs/e/.env",
    ".local/share/virtualenvs/e/pip.conf",
    ".local/share/pipx/venvs/x/pip.conf",
    ".local/share/pipx/venvs/x/pipx_metadata.json",
    ".local/pipx/venvs/x/pipx_metadata.json",
    ".local/share/uv/tools/x/uv-receipt.toml",
    ".cache/pypoetry/virtualenvs/x-py3/pip.conf",
    ".cache/uv/git-v0/db/x/config",
    ".pyenv/versions/3.1/pip.conf",
    ".pyenv/versions/3.1/envs/e/pip.conf",
    ".pyenv/plugins/x/.git/config",
    ".rbenv/plugins/x/.git/config",
    ".asdf/plugins/x/.git/config",
    ".asdf/installs/python/3.1/pip.conf",
    ".asdf/installs/nodejs/1/etc/npmrc",
    ".local/share/mise/installs/node/1/etc/npmrc",
    ".nvm/versions/node/v1/etc/npmrc",
    ".local/share/fnm/node-versions/v1/installation/etc/npmrc",
    ".npm-global/etc/npmrc",
    ".npm-global/lib/.npmrc",
    ".volta/tools/image/node/1/etc/npmrc",
    ".sdkman/candidates/maven/3/conf/settings.xml",
    ".sdkman/candidates/gradle/8/gradle.properties",
    ".local/share/pnpm/rc",
    ".local/share/coursier/credentials.properties",
    ".bundle/cache/git/x/config",
    ".composer/cache/vcs/x/config",
    ".cache/composer/vcs/x/config",
    ".pub-cache/git/cache/x/config",
    ".julia/registries/General/.git/config",
    "bin/.env",
    "bin/deep/x.token",
    "bin/.git/config",
    "bin/service-account.json",
    ".local/bin/.netrc",
    ".local/opt/app/conf/credentials.json",
    ".local/opt/app/pip.conf",
    ".local/opt/app/server.pem",
];

/// A home of the developer's, with what was fetched and with tokens; each file holds its own name.
fn home(stage: &Stage) -> PathBuf {
    let home = fs::canonicalize(stage.folder()).unwrap().join("user");
    for name in FETCHED.iter().chain(TOKENS) {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("content of {name}\n")).unwrap();
    }
    home
}

#[test]
fn caches_of_package_managers_are_seen_read_only_and_the_tokens_beside_them_are_not() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let home = home(&stage);
    let inside = |line: &str| {
        let mut command = stage.bailey(&["sandbox", "run", "--", "sh", "-c", line]);
        Ran::of(command.env("HOME", &home).output().unwrap())
    };
    let outside =
        |line: &str| Ran::of(Command::new("sh").args(["-c", line]).env("HOME", &home).output().unwrap());
    let names = [FETCHED, TOKENS].concat().join(" ");
    let read = format!("cd; for f in {names}; do cat $f 2>/dev/null; done");
    let seen = |names: &[&str]| names.iter().map(|name| format!("content of {name}\n")).collect::<String>();
    let ran = inside(&read);
    assert_eq!(ran.stdout, seen(FETCHED), "{ran:?}");
    assert_eq!(outside(&read).stdout, seen(&[FETCHED, TOKENS].concat()), "the control");
    let write = format!(
        "cd; for f in {}; do if {{ echo x > $f && touch $(dirname $f)/new; }} 2>/dev/null; then echo wrote $f; fi; done",
        FETCHED.join(" ")
    );
    let ran = inside(&write);
    assert_eq!(ran.stdout, "", "{ran:?}");
    for name in FETCHED {
        assert_eq!(fs::read_to_string(home.join(name)).unwrap(), format!("content of {name}\n"));
    }
    let wrote: String = FETCHED.iter().map(|name| format!("wrote {name}\n")).collect();
    assert_eq!(outside(&write).stdout, wrote, "the control");
}

#[test]
fn a_missing_dependency_gives_model_and_human_one_clear_sentence() {
    let manifest = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n\
                    no-such-crate-anywhere = \"1\"\n";
    let stage = Stage::new(&[("Cargo.toml", manifest), ("src/lib.rs", "")]);
    let cases = [
        (&["cargo", "check", "--offline"][..], "cargo fetch"),
        (&["python3", "-m", "no_such_module_anywhere"][..], "python3 -m pip install -r requirements.txt"),
        (&["node", "-e", "require('no-such-package-anywhere')"][..], "npm install"),
    ];
    for (argv, fetch) in cases {
        if !has(&[argv[0], "--version"]) {
            continue;
        }
        let repair = session(&stage, &[("command_run", json!({ "argv": argv }))]);
        let sentence =
            format!("call again with `network`, or ask the human to run `{fetch}` in the project, outside");
        assert!(repair.results[0].contains(&sentence), "{:?}", repair.results);
        let script = [("c", "command_run", json!({ "argv": argv }))];
        let _model =
            stage.model(vec![bailey_testkit::Reply::calls(script), bailey_testkit::Reply::text("done")]);
        let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "do it"]);
        let shown = format!("open a way to what is missing, or fetch it with `{fetch}`");
        assert!((ran.stdout.clone() + &ran.stderr).contains(&shown), "{ran:?}");
    }
}
