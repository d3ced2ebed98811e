//! What the composition root tells the tools.

use bailey_protocol::{Limits, WsPath};

/// How long a command lives in the background where it does not ask for less, in milliseconds: a day.
const BACKGROUND_WALL_MS: u64 = 24 * 60 * 60 * 1000;

/// What the built-in tools need to know.
#[derive(Debug, Clone)]
pub struct ToolConfig {
    /// The workspace's absolute path.
    pub workspace: String,
    /// The directory in which commands and relative paths begin, absolute: the workspace, or below it.
    pub start: String,
    /// What runs a command line, called as `SHELL -c LINE`, such as `/bin/sh`.
    pub shell: String,
    /// What a command may use up when it does not ask for less or more time.
    pub limits: Limits,
    /// The longest time a command may ask for, in milliseconds.
    pub max_wall_ms: u64,
}

impl ToolConfig {
    /// Where a command runs, and a search looks, that names no directory.
    pub(crate) fn start(&self) -> WsPath {
        WsPath(self.start.clone())
    }

    /// The directories from the start up to the workspace.
    pub(crate) fn upwards(&self) -> impl Iterator<Item = &str> {
        let (start, root) = (self.start.trim_end_matches('/'), self.workspace.trim_end_matches('/'));
        let ends = start.rmatch_indices('/').map(|(end, _)| end);
        let directories = std::iter::once(start.len()).chain(ends).filter_map(|end| start.get(..end));
        directories.take_while(|directory| directory.len() >= root.len())
    }

    /// The limits of a command in the background.
    ///
    /// # Errors
    /// Those of [`ToolConfig::limits`].
    pub(crate) fn background_limits(&self, timeout_s: Option<u64>) -> Result<Limits, String> {
        let limits = self.limits(timeout_s)?;
        Ok(if timeout_s.is_some() { limits } else { Limits { wall_ms: BACKGROUND_WALL_MS, ..limits } })
    }

    /// The limits of a command that asks for `timeout_s` seconds.
    ///
    /// # Errors
    /// When it asks for none or for more than there is.
    pub(crate) fn limits(&self, timeout_s: Option<u64>) -> Result<Limits, String> {
        let Some(seconds) = timeout_s else { return Ok(self.limits.clone()) };
        let wall_ms = seconds.saturating_mul(1000);
        if seconds == 0 || wall_ms > self.max_wall_ms {
            let most = self.max_wall_ms / 1000;
            return Err(format!("`timeout_s` must be from 1 to {most}, got {seconds}"));
        }
        Ok(Limits { wall_ms, ..self.limits.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::ToolConfig;
    use bailey_protocol::Limits;

    #[test]
    fn the_way_up_ends_at_the_workspace() {
        let upwards = |start: &str| {
            let (workspace, start, shell) = ("/w/p".into(), start.into(), "/bin/sh".into());
            let config = ToolConfig { workspace, start, shell, limits: Limits::default(), max_wall_ms: 1 };
            config.upwards().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(upwards("/w/p"), ["/w/p"]);
        assert_eq!(upwards("/w/p/a/b"), ["/w/p/a/b", "/w/p/a", "/w/p"]);
    }
}
