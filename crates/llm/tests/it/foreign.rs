//! Servers that others wrote, installed into `target/doubles` by the registries' own clients.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::process::Command;

/// How long one step of an installation may take.
const STEP_MAX: Duration = Duration::from_secs(240);

/// The folder of a server, in which these commands install it where `proof` is not there yet; `None`, with
/// the reason printed, where it cannot be had.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) async fn installed(name: &str, proof: &str, commands: &[&[&str]]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/doubles").join(name);
    match install(&folder, proof, commands).await {
        Ok(()) => Some(folder),
        Err(reason) => {
            println!("SKIPPED: {reason}");
            None
        }
    }
}

/// A port of the loopback that was free just now.
pub(crate) fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn install(folder: &Path, proof: &str, commands: &[&[&str]]) -> Result<(), String> {
    if std::env::var_os("BAILEY_TEST_ALL").is_none_or(|value| value != "1") {
        return Err("foreign servers are tested only with BAILEY_TEST_ALL=1".into());
    }
    let cannot = |error: std::io::Error| format!("`{}`: {error}", folder.display());
    fs::create_dir_all(folder).map_err(cannot)?;
    // Tests run side by side, and one installs for all.
    let lock = File::create(folder.join(".lock")).map_err(cannot)?;
    lock.lock().map_err(cannot)?;
    if folder.join(proof).exists() {
        return Ok(());
    }
    for &command in commands {
        let (&program, arguments) = command.split_first().ok_or("nothing to run")?;
        let mut step = Command::new(program);
        let step = step.args(arguments).current_dir(folder).kill_on_drop(true).output();
        let step =
            tokio::time::timeout(STEP_MAX, step).await.map_err(|_| format!("`{program}` took too long"))?;
        let output = step.map_err(|error| format!("no `{program}`: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("`{}` failed: {}", command.join(" "), said.trim()));
        }
    }
    Ok(())
}
