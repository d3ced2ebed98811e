//! Tab: commands, models, and the paths of the project after `@`.

use super::{Chat, Front, command};
use bailey_protocol::Op;

/// How many candidates are shown.
const SHOWN_MAX: usize = 12;

impl Front<'_> {
    /// Completes the word before the cursor as far as it is unambiguous. The session finds paths, because
    /// only the walls see the project.
    pub(super) fn complete(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        match path(chat.line.before()).map(str::to_owned) {
            Some(like) => self.send(Op::Files { like }),
            None => chat.complete(),
        }
    }
}

/// The beginning of a path before the cursor, after `@`.
fn path(before: &str) -> Option<&str> {
    let word = before.rsplit(char::is_whitespace).next()?;
    word.strip_prefix('@')
}

impl Chat {
    /// Completes a command or a model's name. If there are several candidates, it shows them.
    fn complete(&mut self) {
        let before = self.line.before().to_owned();
        let (word, candidates): (&str, Vec<&str>) = match before.strip_prefix("/model ") {
            Some(word) => (word, self.models.iter().map(String::as_str).collect()),
            None if before.starts_with('/') => (before.as_str(), command::NAMES.to_vec()),
            None => return,
        };
        let fit: Vec<&str> = candidates.into_iter().filter(|name| name.starts_with(word)).collect();
        let end = match fit.as_slice() {
            [only] if command::OPEN.contains(only) => " ",
            _ => "",
        };
        let (length, fit) = (word.len(), fit.iter().map(|name| format!("{name}{end}")).collect::<Vec<_>>());
        self.take(length, &fit);
    }

    /// Takes the paths that the session found.
    pub(super) fn found(&mut self, like: &str, paths: &[String]) {
        // The user may have typed on.
        if path(self.line.before()) != Some(like) {
            return;
        }
        match paths {
            [] => self.hint = format!("no path like `{like}`"),
            paths if paths.iter().all(|path| path.starts_with(like)) => self.take(like.len(), paths),
            // Found by a part of the name.
            [only] => self.line.replace_before(like.len(), only),
            paths => self.show(paths),
        }
    }

    /// Puts the common beginning of the candidates in the place of the last `length` bytes.
    fn take(&mut self, length: usize, fit: &[String]) {
        let Some(first) = fit.first() else { return };
        let common = fit.iter().fold(first.clone(), |common, name| {
            let same = common.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
            common.chars().take(same).collect()
        });
        self.line.replace_before(length, &common);
        if fit.len() > 1 {
            self.show(fit);
        }
    }

    fn show(&mut self, candidates: &[String]) {
        let more = candidates.len().saturating_sub(SHOWN_MAX);
        let shown: Vec<&str> = candidates.iter().take(SHOWN_MAX).map(String::as_str).collect();
        let more = if more > 0 { format!("  and {more} more") } else { String::new() };
        self.hint = format!("{}{more}", shown.join("  "));
    }
}
