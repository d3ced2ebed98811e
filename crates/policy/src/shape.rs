//! The shape of an action, checked before any rule runs: what no rule could judge is denied.

mod arguments;

use crate::host::Host;
use alloc::{collections::BTreeSet, format, string::String};
use bailey_protocol::{
    Command, HeaderValue, MergeKind, Tip, WsPath,
    action::{Description, Destination, Resource},
};

/// Most bytes of arguments: argv, environment, patterns, URL, headers. Paths have a limit of their own.
pub const ARGUMENTS_MAX: usize = 1 << 20;
/// Most bytes of content in one action: new files, bodies, standard input, all together.
pub const CONTENT_MAX: usize = 32 << 20;
/// Longest path in bytes (Linux `PATH_MAX`).
pub const PATH_MAX: usize = 4096;
/// Most paths in one change or merge.
pub const PATHS_MAX: usize = 100_000;
/// Most references that move with a merge.
pub(crate) const TIPS_MAX: usize = 100;
/// Most variables, headers or arguments that have names.
pub const KEYS_MAX: usize = 1000;
/// How deep the arguments of a tool may be nested.
pub const DEPTH_MAX: usize = 32;

/// Says why an action is malformed.
pub(crate) fn check(about: &Description<'_>) -> Result<(), String> {
    let (arguments, content) = (about.argument_bytes, about.content_bytes);
    if arguments > ARGUMENTS_MAX {
        return Err(format!("{arguments} bytes of arguments: at most {ARGUMENTS_MAX}"));
    }
    if content > CONTENT_MAX {
        return Err(format!("{content} bytes of content: at most {CONTENT_MAX}"));
    }
    paths(about)?;
    let branches = about.resources.iter().filter(|it| matches!(it, Resource::Branch(_))).count();
    for resource in &about.resources {
        match resource {
            Resource::Command(command) => exec(command)?,
            Resource::Host(to) => request(to)?,
            Resource::Tool(tool) => arguments::of_tool(tool)?,
            Resource::Branch(tip) => branch(tip)?,
            Resource::Path(_) => {}
        }
    }
    if branches > TIPS_MAX {
        return Err(format!("{branches} references: at most {TIPS_MAX}"));
    }
    Ok(())
}

/// A reference that moves with a merge: a branch, or a kept reference of a session's.
fn branch(tip: &Tip) -> Result<(), String> {
    let is_object = |id: &String| id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_branch = |name: &String| name.starts_with("refs/heads/") || name.starts_with("refs/bailey/");
    let is_fit = [Some(&tip.name), tip.aside.as_ref()].into_iter().flatten().all(is_branch)
        && [Some(&tip.new), tip.old.as_ref()].into_iter().flatten().all(is_object);
    match is_fit {
        true => Ok(()),
        false => Err(format!("`{}` is no branch that can move with a merge", tip.name)),
    }
}

fn paths(about: &Description<'_>) -> Result<(), String> {
    let paths = about.paths();
    let is_elsewhere =
        |it: &Resource<'_>| matches!(it, Resource::Host(_) | Resource::Tool(_) | Resource::Branch(_));
    let empty_allowed =
        about.direction == Some(MergeKind::Discard) || about.resources.iter().any(is_elsewhere);
    if paths.is_empty() && !empty_allowed {
        return Err("no path in an action that needs one".into());
    }
    if paths.len() > PATHS_MAX {
        return Err(format!("{} paths: at most {PATHS_MAX}", paths.len()));
    }
    let mut seen = BTreeSet::new();
    for path in paths {
        canonical(path)?;
        if !seen.insert(path) {
            return Err(format!("path `{path}` named twice"));
        }
    }
    Ok(())
}

fn canonical(path: &WsPath) -> Result<(), String> {
    let text = path.0.as_str();
    let shown = plain(text);
    if text.len() > PATH_MAX {
        return Err(format!("path of {} bytes: at most {PATH_MAX}", text.len()));
    }
    if let Some(c) = text.chars().find(|c| is_deceptive(*c)) {
        return Err(format!("control, bidi or invisible character {} in path `{shown}`", c.escape_unicode()));
    }
    let Some(rest) = text.strip_prefix('/') else {
        return Err(format!("path `{shown}` is not absolute"));
    };
    if !rest.is_empty() && rest.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(format!("path `{shown}` is not canonical"));
    }
    Ok(())
}

fn exec(command: &Command) -> Result<(), String> {
    if command.argv.first().is_none_or(String::is_empty) {
        return Err("a command without a program".into());
    }
    if command.env.len() > KEYS_MAX {
        return Err(format!("{} variables: at most {KEYS_MAX}", command.env.len()));
    }
    if command
        .argv
        .iter()
        .chain(command.env.keys())
        .chain(command.env.values())
        .any(|text| text.contains('\0'))
    {
        return Err("a zero byte in a command".into());
    }
    match command.env.keys().find(|name| name.is_empty() || name.contains('=')) {
        Some(name) => Err(format!("`{}` is no name for a variable", plain(name))),
        None => Ok(()),
    }
}

/// Whom a request goes to, and what it does there.
fn line(method: &str, url: &str) -> Result<(), String> {
    if Host::of(url).is_none() {
        return Err(format!("`{}` is no plain http or https URL", plain(url)));
    }
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(format!("`{}` is no method", plain(method)));
    }
    Ok(())
}

fn request(to: &Destination<'_>) -> Result<(), String> {
    line(&to.method, to.url)?;
    if to.headers.len() > KEYS_MAX {
        return Err(format!("{} headers: at most {KEYS_MAX}", to.headers.len()));
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let breaks = |text: &str| text.contains(['\r', '\n', '\0']);
    for (name, value) in to.headers {
        let broken = match value {
            HeaderValue::Text(text) => breaks(text),
            HeaderValue::Secret { prefix, .. } => breaks(prefix),
        };
        if name.is_empty() || !name.bytes().all(token) || broken {
            return Err(format!("header `{}` is malformed", plain(name)));
        }
    }
    Ok(())
}

/// Control characters, bidirectional controls (UAX #9), and characters that show nothing. The joiners U+200C
/// and U+200D are letters' business in several scripts and pass.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The beginning of a hostile text, for a message.
pub(crate) fn plain(text: &str) -> String {
    beginning(text, 80)
}

/// The first characters of a hostile text, with every deceptive one escaped.
pub(crate) fn beginning(text: &str, chars: usize) -> String {
    let mut shown = String::new();
    for c in text.chars().take(chars) {
        if is_deceptive(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests;
