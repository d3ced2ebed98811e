//! Programs that the suite does not come with, built beside the one it comes with.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A program of the workspace, built as these words of Cargo's say.
pub(crate) fn built(program: &str, words: &[&str]) -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_bailey")).parent().unwrap();
    let name = match profile.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        name => name,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--profile", name]).args(words);
    cargo.arg("--target-dir").arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    // By what says of which package this test is, crates that look at it would be compiled anew, here and
    // again at the next build.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_"]
            .iter()
            .any(|of| name.as_encoded_bytes().starts_with(of.as_bytes()))
        {
            cargo.env_remove(name);
        }
    }
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    profile.join(program)
}
