//! Path globs: gitignore's spelling, matched segment by segment in bounded time.
//!
//! A rule's glob is compiled when the rule is made, before anybody knows where the workspace lies. Its first
//! segment says what it is relative to, so that one compiled glob serves every session.

use crate::{
    fit::Fit,
    place::{Base, Located, Places},
};
use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::WsPath;
use serde::{Deserialize, Serialize, Serializer};

/// Longest glob in bytes.
const LENGTH_MAX: usize = 1024;
/// Most segments in a glob: one bit each in a 64-bit word, and one for having matched them all.
const SEGMENTS_MAX: usize = 60;

/// A path glob.
///
/// - `/…` is absolute; `{workspace}`, `{home}`, `{bailey}` and `{programs}` stand for their places; anything
///   else is relative to the workspace, as in a `.gitignore` at its root.
/// - `*` is any run of characters within one segment, `?` one character, `[a-z]` and `[!a-z]` a class, `\`
///   takes the next character literally. `**` as a whole segment is zero or more segments.
/// - A relative glob without a slash matches at any depth; a slash at the end means everything beneath, too.
///
/// A deny or a review of a folder covers what lies beneath it; an allow covers only what its glob spells out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob {
    text: String,
    base: Base,
    segments: Vec<Segment>,
    /// Whether it is the name of a file. Then it does not cover the paths beneath a folder of that name.
    is_of_files: bool,
    /// Whether names are compared in lower case.
    any_case: bool,
}

/// Why a glob cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It has no characters.
    #[error("empty glob: write `**` for everything in the workspace, `/**` for everything")]
    Empty,
    /// It is longer than 1,024 bytes or has more than 60 segments.
    #[error("glob is too long: at most 1024 bytes and 60 segments")]
    TooLong,
    /// It begins with a variable that does not exist.
    #[error(
        "unknown variable `{{{0}}}`: there are `{{workspace}}`, `{{home}}`, `{{bailey}}` and `{{programs}}`"
    )]
    Variable(String),
    /// A brace stands where no variable can.
    #[error("`{{` and `}}` only name a variable at the start of a glob: write alternatives as two globs")]
    Brace,
    /// It begins with `!`.
    #[error("a glob cannot be negated with `!`: use `except`")]
    Negated,
    /// It begins with `~`.
    #[error("`~` is not expanded: write `{{home}}`")]
    Tilde,
    /// It has an empty, `.` or `..` segment.
    #[error("a glob has no empty, `.` or `..` segments: canonical paths have none")]
    Segment,
    /// A class is not closed, is empty, or holds a slash.
    #[error("`[` without a matching `]` in the same segment")]
    Class,
    /// It is a pattern where files and whole folders alone are given.
    #[error("files and whole folders can be given, such as `src` or `src/lib.rs`")]
    NotWhole,
    /// It names nothing where a file or a folder is given.
    #[error("an empty path: `.` is all of the workspace")]
    Nothing,
    /// It begins with `~` where a file or a folder is given.
    #[error("`~` is not expanded: write the whole path")]
    Home,
    /// It ends with a backslash.
    #[error("nothing follows the last `\\`")]
    Escape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`.
    Any,
    Literal(String),
    Pattern(Vec<Token>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    One,
    Run,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    /// When it cannot be read; the text says how to write it.
    pub fn new(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        if text.len() > LENGTH_MAX {
            return Err(GlobError::TooLong);
        }
        let (base, rest) = split_base(text)?;
        let mut segments = Vec::new();
        let floating = base == Base::Workspace && rest == text && !rest.trim_end_matches('/').contains('/');
        if floating {
            segments.push(Segment::Any);
        }
        let folder = text.ends_with('/');
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if !rest.is_empty() {
            for segment in rest.split('/') {
                segments.push(Segment::new(segment)?);
            }
        }
        if folder {
            segments.push(Segment::Any);
        }
        segments.dedup_by(|next, last| *next == Segment::Any && *last == Segment::Any);
        if segments.len() > SEGMENTS_MAX {
            return Err(GlobError::TooLong);
        }
        Ok(Self { text: text.to_string(), base, segments, is_of_files: false, any_case: false })
    }

    /// The same glob, for names in upper and lower case alike.
    ///
    /// # Errors
    /// As [`Glob::new`].
    pub(crate) fn of_any_case(text: &str) -> Result<Self, GlobError> {
        Ok(Self { text: text.to_string(), any_case: true, ..Self::new(&text.to_ascii_lowercase())? })
    }

    /// The glob that matches every path.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            text: "/**".to_string(),
            base: Base::Root,
            segments: [Segment::Any].into(),
            is_of_files: false,
            any_case: false,
        }
    }

    /// The glob that matches the root alone. As a path, `/` is everything beneath it, as each folder is.
    pub(crate) fn root() -> Self {
        Self {
            text: "/".to_string(),
            base: Base::Root,
            segments: Vec::new(),
            is_of_files: false,
            any_case: false,
        }
    }

    /// The same as the name of a file: it covers no folder of that name, and no path beneath one.
    pub(crate) fn of_files(self) -> Self {
        Self { is_of_files: true, ..self }
    }

    /// Whether it spells out this path.
    #[must_use]
    pub fn is_of(&self, path: &WsPath, places: &Places) -> bool {
        self.fit(&Located::new(&path.0, false, places)) == Fit::Yes
    }

    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it is relative to.
    pub(crate) fn base(&self) -> Base {
        self.base
    }

    /// The names that every path begins with, from its base on, of which it says anything, and of each folder
    /// that it matches.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map_while(|segment| match segment {
            Segment::Literal(name) if !self.any_case => Some(name.as_str()),
            Segment::Literal(_) | Segment::Any | Segment::Pattern(_) => None,
        })
    }

    /// The one path that it matches or, where its last segment is `**`, the folder of which it matches
    /// everything, and whether it is one. `None` for a glob that leaves anything else open.
    pub(crate) fn plain(&self, places: &Places) -> Option<(String, bool)> {
        let (last, above) = match self.segments.split_last() {
            Some((Segment::Any, above)) => (true, above),
            _ => (false, self.segments.as_slice()),
        };
        let base = match self.base {
            Base::Root => "",
            Base::Workspace => &places.workspace,
            Base::Home => &places.user_home,
            Base::Bailey => &places.bailey_home,
            Base::Programs => return None,
        };
        if base.is_empty() && self.base != Base::Root {
            return None;
        }
        let mut path = base.trim_end_matches('/').to_string();
        for segment in above {
            let Segment::Literal(name) = segment else { return None };
            if self.any_case {
                return None;
            }
            path.push('/');
            path.push_str(name);
        }
        Some((if path.is_empty() { "/".to_string() } else { path }, last))
    }

    /// How it fits a path. `Maybe` is a path beneath a folder that it matches or, for a whole tree, a tree in
    /// which it may match something.
    pub(crate) fn fit(&self, path: &Located<'_>) -> Fit {
        let Some(below) = path.below(self.base) else {
            return if path.holds(self.base) { Fit::Maybe } else { Fit::No };
        };
        self.fit_below(below.iter().copied(), path.tree)
    }

    /// How it fits a path that begins where the glob does.
    pub(crate) fn fit_names<'a>(&self, names: impl Iterator<Item = &'a str>) -> Fit {
        self.fit_below(names, false)
    }

    fn fit_below<'a>(&self, names: impl Iterator<Item = &'a str>, tree: bool) -> Fit {
        let accept = 1_u64 << self.segments.len();
        let mut states = self.spread(1);
        let mut folder = false;
        for name in names {
            folder |= !self.is_of_files && states & accept != 0;
            states = self.step(states, name);
            if states == 0 {
                break;
            }
        }
        let exact = states & accept != 0;
        let whole = !tree || self.segments.last() == Some(&Segment::Any);
        match (exact && whole, folder || (tree && states != 0)) {
            (true, _) => Fit::Yes,
            (false, true) => Fit::Maybe,
            (false, false) => Fit::No,
        }
    }

    /// The states reachable after one more segment. State `i` means that the first `i` segments are matched.
    fn step(&self, states: u64, name: &str) -> u64 {
        let lower = self.any_case.then(|| name.to_ascii_lowercase());
        let name = lower.as_deref().unwrap_or(name);
        let mut next = 0;
        for (i, segment) in self.segments.iter().enumerate() {
            if states & (1 << i) != 0 {
                match segment {
                    Segment::Any => next |= 1 << i,
                    Segment::Literal(literal) if literal == name => next |= 1 << (i + 1),
                    Segment::Pattern(tokens) if matches(tokens, name) => next |= 1 << (i + 1),
                    Segment::Literal(_) | Segment::Pattern(_) => {}
                }
            }
        }
        self.spread(next)
    }

    /// Adds the states that `**` reaches with zero segments.
    fn spread(&self, mut states: u64) -> u64 {
        for (i, segment) in self.segments.iter().enumerate() {
            if *segment == Segment::Any && states & (1 << i) != 0 {
                states |= 1 << (i + 1);
            }
        }
        states
    }
}

impl TryFrom<String> for Glob {
    type Error = GlobError;

    fn try_from(text: String) -> Result<Self, GlobError> {
        Self::new(&text)
    }
}

impl Serialize for Glob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

fn split_base(text: &str) -> Result<(Base, &str), GlobError> {
    if let Some(rest) = text.strip_prefix('/') {
        return Ok((Base::Root, rest));
    }
    if text.starts_with('!') {
        return Err(GlobError::Negated);
    }
    if text == "~" || text.starts_with("~/") {
        return Err(GlobError::Tilde);
    }
    let Some(rest) = text.strip_prefix('{') else {
        return Ok((Base::Workspace, text));
    };
    let (name, rest) = rest.split_once('}').ok_or(GlobError::Brace)?;
    let base = match name {
        "workspace" => Base::Workspace,
        "home" => Base::Home,
        "bailey" => Base::Bailey,
        "programs" => Base::Programs,
        _ => return Err(GlobError::Variable(name.to_string())),
    };
    match rest.strip_prefix('/') {
        _ if rest.is_empty() => Ok((base, "")),
        Some(rest) => Ok((base, rest)),
        None => Err(GlobError::Segment),
    }
}

impl Segment {
    fn new(text: &str) -> Result<Self, GlobError> {
        match text {
            "" | "." | ".." => return Err(GlobError::Segment),
            "**" => return Ok(Self::Any),
            _ => {}
        }
        let mut tokens = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' if tokens.last() == Some(&Token::Run) => continue,
                '*' => Token::Run,
                '?' => Token::One,
                '[' => class(&mut chars)?,
                '\\' => Token::Char(chars.next().ok_or(GlobError::Escape)?),
                '{' | '}' => return Err(GlobError::Brace),
                c => Token::Char(c),
            });
        }
        let literal: Option<String> = tokens
            .iter()
            .map(|token| match token {
                Token::Char(c) => Some(*c),
                _ => None,
            })
            .collect();
        Ok(literal.map_or(Self::Pattern(tokens), Self::Literal))
    }
}

/// Reads a class after its `[`. As in a shell, `]` is literal when it comes first.
fn class(chars: &mut core::str::Chars<'_>) -> Result<Token, GlobError> {
    let mut rest = chars.clone();
    let negated = matches!(rest.clone().next(), Some('!' | '^'));
    if negated {
        rest.next();
    }
    let mut ranges: Vec<(char, char)> = Vec::new();
    loop {
        let low = match rest.next().ok_or(GlobError::Class)? {
            ']' if !ranges.is_empty() => break,
            '\\' => rest.next().ok_or(GlobError::Class)?,
            c => c,
        };
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                rest = ahead;
                if high == '\\' { rest.next().ok_or(GlobError::Class)? } else { high }
            }
            _ => low,
        };
        if low > high {
            return Err(GlobError::Class);
        }
        ranges.push((low, high));
    }
    *chars = rest;
    Ok(Token::Class { negated, ranges })
}

impl Token {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::One | Self::Run => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// Whether a segment's tokens match a name. Only the last `*` is ever tried again, so the time is at most the
/// product of both lengths.
fn matches(tokens: &[Token], name: &str) -> bool {
    let mut tokens = tokens;
    let mut name = name.chars();
    let mut retry: Option<(&[Token], core::str::Chars<'_>)> = None;
    loop {
        let ahead = name.clone().next();
        match (tokens.split_first(), ahead) {
            (Some((Token::Run, rest)), _) => {
                retry = Some((rest, name.clone()));
                tokens = rest;
            }
            (Some((token, rest)), Some(c)) if token.matches(c) => {
                tokens = rest;
                name.next();
            }
            (None, None) => return true,
            _ => {
                let Some((rest, mut from)) = retry.take() else { return false };
                if from.next().is_none() {
                    return false;
                }
                retry = Some((rest, from.clone()));
                tokens = rest;
                name = from;
            }
        }
    }
}
