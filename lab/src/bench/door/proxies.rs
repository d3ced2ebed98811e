//! Other proxies, where they are installed: each writes a line for each request, as the door does.

use anyhow::{Result, bail};
use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long one may take to listen.
const START: Duration = Duration::from_secs(20);

/// A proxy that runs; it ends with its value.
pub(super) struct Proxy {
    pub(super) name: &'static str,
    pub(super) url: String,
    child: Child,
}

impl Proxy {
    /// Starts one of this name; none where it is not installed.
    ///
    /// # Errors
    /// When it does not come to listen.
    pub(super) fn start(name: &'static str, folder: &Path) -> Result<Option<Self>> {
        // Nobody else takes it in between, or it does not listen, which is said.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let at = folder.display();
        let (settings, options): (_, &[&str]) = match name {
            "tinyproxy" => (
                format!(
                    "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 200\nLogFile \"{at}/tinyproxy.log\"\nLogLevel Connect\n"
                ),
                &["-d", "-c"],
            ),
            _ => (
                format!(
                    "http_port 127.0.0.1:{port}\nhttp_access allow all\ncache deny all\naccess_log stdio:{at}/squid/access.log\n\
                     cache_log {at}/squid/cache.log\npid_filename none\ncoredump_dir {at}/squid\nshutdown_lifetime 0 seconds\n"
                ),
                &["-N", "-f"],
            ),
        };
        let file = folder.join(format!("{name}.conf"));
        fs::write(&file, settings)?;
        // As root it becomes somebody else, who writes there.
        let place = folder.join("squid");
        fs::create_dir_all(&place)?;
        fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(name);
        command.args(options).arg(&file).env("PATH", path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("SKIPPED {name} (not installed): apt-get install {name}");
            return Ok(None);
        };
        let mut proxy = Self { name, url: format!("http://127.0.0.1:{port}"), child };
        let until = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > until || proxy.child.try_wait()?.is_some() {
                bail!("{name} does not listen");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(proxy))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
