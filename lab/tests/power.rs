//! A machine that loses its power, in short: `cargo xtask kill --power 30` is the whole.

use std::process::{Command, Stdio};

/// Each takes two boots of an emulated machine.
const TIMES: &str = "3";

#[test]
fn the_journal_outlives_a_loss_of_power() {
    if std::env::var_os("BAILEY_TEST_LONG").is_none() {
        println!("SKIPPED: it emulates a machine; `cargo xtask long` runs it");
        return;
    }
    let there = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        println!("SKIPPED: qemu-system-x86_64 is not installed");
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["kill", "--power", TIMES, "--seed", "4"])
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("control: with `synchronous=OFF` the check fails"), "{text}");
}
