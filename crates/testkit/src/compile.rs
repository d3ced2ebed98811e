//! Small programs that must not compile, each with the reason.
//!
//! The compiler gets the crates that cargo has built for the tests already, so that no crate is compiled
//! twice. Beside each `NAME.fail.rs` stands `NAME.fail.stderr` with the first lines of its errors; each
//! `NAME.pass.rs` must compile. With `BAILEY_OVERWRITE=1` the expected errors are written anew.

use serde_json::Value;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Checks all programs of a directory, below the package's own.
///
/// # Panics
/// Names each program for which the compiler gives another answer.
pub fn compiled(directory: &Path) {
    let compiler = Compiler::new();
    let mut cases: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    cases.sort();
    assert!(cases.len() > 1, "no programs in {}", directory.display());
    let wrong: Vec<String> = cases.iter().filter_map(|case| compiler.wrong(case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

struct Compiler {
    rustc: PathBuf,
    /// The libraries by the names that programs use.
    libraries: BTreeMap<String, PathBuf>,
    out: tempfile::TempDir,
}

impl Compiler {
    fn new() -> Self {
        let cargo = PathBuf::from(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let mut build = Command::new(&cargo);
        // As the tests themselves were built: all is there, and cargo only says where.
        build.args(["build", "--workspace", "--all-targets", "--locked", "--message-format=json", "--quiet"]);
        build.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        for (name, _) in env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        }) {
            build.env_remove(name);
        }
        let said = build.output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let mut libraries = BTreeMap::new();
        for line in String::from_utf8_lossy(&said.stdout).lines() {
            let Ok(artifact) = serde_json::from_str::<Value>(line) else { continue };
            let is_test = artifact.pointer("/profile/test") == Some(&Value::Bool(true));
            let name = artifact.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
            let files = artifact.pointer("/filenames").and_then(Value::as_array);
            // A test binary has no library.
            let rlib =
                files.into_iter().flatten().filter_map(Value::as_str).find(|file| file.ends_with(".rlib"));
            if let (false, Some(rlib)) = (is_test, rlib) {
                libraries.insert(name.replace('-', "_"), PathBuf::from(rlib));
            }
        }
        let beside = cargo.with_file_name("rustc");
        let rustc = if beside.exists() { beside } else { "rustc".into() };
        Self { rustc, libraries, out: tempfile::tempdir().unwrap() }
    }

    /// The difference between the compiler's answer and the expected one.
    fn wrong(&self, case: &Path) -> Option<String> {
        let source = fs::read_to_string(case).unwrap();
        let mut rustc = Command::new(&self.rustc);
        rustc.args([
            "--edition=2024",
            "--crate-name=case",
            "--crate-type=bin",
            "--emit=metadata",
            "--color=never",
            "--out-dir",
        ]);
        rustc.arg(self.out.path()).arg(case);
        let is_named = |name: &str| source.contains(&format!("{name}::"));
        for (name, library) in self.libraries.iter().filter(|(name, _)| is_named(name)) {
            rustc.arg("-L").arg(format!("dependency={}", library.with_file_name("deps").display()));
            rustc.arg("-L").arg(format!("dependency={}", library.parent().unwrap().display()));
            rustc.arg("--extern").arg(format!("{name}={}", library.display()));
        }
        let output = rustc.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let errors: String = said
            .lines()
            .filter(|line| line.starts_with("error") && !line.starts_with("error: aborting"))
            .map(|line| format!("{line}\n"))
            .collect();
        let name = case.display();
        if case.to_string_lossy().ends_with(".pass.rs") {
            return (!output.status.success()).then(|| format!("{name} must compile:\n{said}"));
        }
        let expected = case.with_extension("stderr");
        if env::var_os("BAILEY_OVERWRITE").is_some() {
            fs::write(&expected, &errors).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        let is_right = !output.status.success() && !errors.is_empty() && errors == expected;
        (!is_right).then(|| format!("{name} must be refused with:\n{expected}and the compiler says:\n{said}"))
    }
}
