//! Projects of several languages, each tested by its own runner.

use super::{has, outside, repairs};
use crate::stage::Stage;
use std::process::Command;

const RUST_TEST: &str = "#[test]\nfn adds() {\n    assert_eq!(calc::sum(2, 3), 5);\n}\n";
const CARGO_TEST: &[&str] = &["cargo", "test", "--offline"];

/// A workspace of a library and a program; what else the library depends on is given.
fn rust_workspace(dependency: &str, body: &str, more: &[(&str, &str)]) -> Stage {
    let library = format!(
        "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n{dependency}\n"
    );
    let program = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n\
                   calc = { path = \"../calc\" }\n";
    let files = [
        (".gitignore", "target/\n"),
        ("Cargo.toml", "[workspace]\nmembers = [\"app\", \"calc\"]\nresolver = \"2\"\n"),
        ("app/Cargo.toml", program),
        ("app/src/main.rs", "fn main() {\n    println!(\"{}\", calc::sum(1, 2));\n}\n"),
        ("calc/Cargo.toml", &library),
        ("calc/src/lib.rs", body),
        ("calc/tests/sum.rs", RUST_TEST),
    ];
    Stage::new(&[&files, more].concat())
}

fn lock(stage: &Stage) -> bool {
    let (locked, output) = outside(stage, &["cargo", "generate-lockfile", "--offline"]);
    if !locked {
        println!("SKIPPED: no lock file can be made without a network: {output}");
        return false;
    }
    stage.git(&["add", "--all"]);
    stage.git(&["commit", "--quiet", "--message", "lock"]);
    true
}

#[test]
fn a_rust_workspace_whose_crates_are_only_in_the_registry_cache_is_repaired() {
    let body = "cfg_if::cfg_if! {\n    if #[cfg(unix)] {\n        pub fn sum(a: i64, b: i64) -> i64 {\n            a - b\n        \
                }\n    } else {\n        pub fn sum(a: i64, b: i64) -> i64 {\n            a + b\n        }\n    }\n}\n";
    let stage = rust_workspace("cfg-if = \"1\"", body, &[]);
    if !lock(&stage) {
        return;
    }
    let repair = repairs(&stage, "calc/src/lib.rs", "a - b", "a + b", CARGO_TEST);
    assert!(repair.results[1].contains("Compiling cfg-if v1"), "{:?}", repair.results[1]);
}

#[test]
fn a_rust_workspace_with_vendored_crates_is_repaired() {
    let config = "[source.crates-io]\nreplace-with = \"vendored-sources\"\n\n[source.vendored-sources]\n\
                  directory = \"vendor\"\n";
    let vendored = [
        (".cargo/config.toml", config),
        ("vendor/plain-sum/.cargo-checksum.json", "{\"files\":{}}"),
        (
            "vendor/plain-sum/Cargo.toml",
            "[package]\nname = \"plain-sum\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
        ),
        (
            "vendor/plain-sum/src/lib.rs",
            "pub fn plain_sum(items: &[i64]) -> i64 {\n    items.iter().sum()\n}\n",
        ),
    ];
    let body = "pub fn sum(a: i64, b: i64) -> i64 {\n    plain_sum::plain_sum(&[a]) + plain_sum::plain_sum(&[a])\n}\n\
         pub const _UNUSED: fn(i64, i64) -> i64 = |_, b| b;\n";
    let stage = rust_workspace("plain-sum = \"1\"", body, &vendored);
    if !lock(&stage) {
        return;
    }
    let (old, new) = ("+ plain_sum::plain_sum(&[a])", "+ plain_sum::plain_sum(&[b])");
    let repair = repairs(&stage, "calc/src/lib.rs", old, new, CARGO_TEST);
    assert!(repair.results[1].contains("Compiling plain-sum v1"), "{:?}", repair.results[1]);
}

/// A Python that has pytest: the first of the path, or Debian's own, to which Debian's package belongs. None
/// is a failure in the full run, which installs it.
fn python_with_pytest() -> Option<&'static str> {
    let runs = |python: &&str| {
        let version = Command::new(python).args(["-m", "pytest", "--version"]).output();
        version.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(runs);
    let is_full = std::env::var_os("BAILEY_TEST_ALL").is_some_and(|value| value == "1");
    assert!(
        found.is_some() || !is_full,
        "there is no pytest: `cargo xtask test --all --install` installs it"
    );
    if found.is_none() {
        println!("SKIPPED: there is no pytest here");
    }
    found
}

#[test]
fn a_python_project_with_pytest_is_repaired() {
    let stage = Stage::new(&[
        (".gitignore", "__pycache__/\n.pytest_cache/\n"),
        ("pyproject.toml", "[project]\nname = \"calc\"\nversion = \"0.1.0\"\n"),
        ("calc.py", "def total(a, b):\n    return a - b\n"),
        (
            "tests/test_calc.py",
            "import pytest\n\nfrom calc import total\n\n\n@pytest.fixture\ndef two():\n    return 2\n\n\n\
             @pytest.mark.parametrize((\"b\", \"sum\"), [(3, 5), (0, 2)])\ndef test_total(two, b, sum):\n    \
             assert total(two, b) == sum\n",
        ),
    ]);
    let Some(python) = python_with_pytest() else { return };
    let repair = repairs(&stage, "calc.py", "a - b", "a + b", &[python, "-m", "pytest"]);
    assert!(repair.results[1].contains("1 failed, 1 passed"), "{:?}", repair.results[1]);
    assert!(repair.results[3].contains("2 passed"), "{:?}", repair.results[3]);
}

#[test]
fn a_node_project_with_nodes_own_test_runner_is_repaired() {
    let stage = Stage::new(&[
        (
            "package.json",
            "{\"name\": \"calc\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}\n",
        ),
        ("calc.js", "exports.total = (a, b) => a - b;\n"),
        (
            "calc.test.js",
            "const assert = require('node:assert');\nconst { test } = require('node:test');\n\
             const { total } = require('./calc.js');\ntest('total', () => assert.strictEqual(total(2, 3), 5));\n",
        ),
    ]);
    if has(&["node", "--version"]) {
        repairs(&stage, "calc.js", "a - b", "a + b", &["node", "--test"]);
    }
}

#[test]
fn a_c_project_with_make_is_repaired() {
    let stage = Stage::new(&[
        (".gitignore", "*.o\ncheck\n"),
        (
            "Makefile",
            "test: check\n\t./check\n\ncheck: check.o calc.o\n\tcc -o $@ $^\n\n%.o: %.c calc.h\n\tcc -c -o $@ $<\n\
             \nclean:\n\trm -f check *.o\n\n.PHONY: test clean\n",
        ),
        ("calc.h", "int total(int a, int b);\n"),
        ("calc.c", "#include \"calc.h\"\n\nint total(int a, int b)\n{\n\treturn a - b;\n}\n"),
        ("check.c", "#include \"calc.h\"\n\nint main(void)\n{\n\treturn total(2, 3) == 5 ? 0 : 1;\n}\n"),
    ]);
    if has(&["make", "--version"]) && has(&["cc", "--version"]) {
        repairs(&stage, "calc.c", "a - b", "a + b", &["make", "test"]);
    }
}
