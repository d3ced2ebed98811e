//! Credentials known by their shape: a literal prefix followed by a run of certain characters.
//!
//! Each shape is decided by a bounded number of bytes after its prefix; from there on the run is swallowed to
//! its end, however long. So neither regular expressions nor a large buffer are needed, and hostile input
//! costs linear time.

use crate::pem;
use std::borrow::Cow;

/// How many bytes before a match may be looked at; never more than are kept for views.
const CONTEXT: usize = 32;

/// The longest first part of a JSON Web Token that is looked through.
const JWT_HEADER_MAX: usize = 512;

/// Characters that a run consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Letters and digits.
    Alnum,
    /// Capital letters and digits.
    Upper,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-` (Base64, URL-safe).
    Dash,
    /// Letters, digits, `_`, `-` and `.`.
    Dot,
    /// RFC 6750's `b64token`: letters, digits, `-._~+/` and `=`.
    Token,
    /// Digits.
    Digits,
    /// Hexadecimal digits.
    Hex,
}

impl Class {
    pub(crate) const COUNT: usize = 8;

    pub(crate) fn has(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Dash => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dot => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Digits => byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Token => byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte),
        }
    }
}

/// What else than the prefix must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `min` characters of the class, mixed enough to be random.
    Plain,
    /// The same, with a digit among them: the prefix alone is too common.
    Digit,
    /// `min` characters of the class, whatever they are.
    Counted,
    /// A JSON Web Token (RFC 7519): a second part after a point.
    Jwt,
    /// A scheme and its value in an `Authorization` header, in whatever notation.
    Authorization,
    /// A private key block (RFC 7468).
    Pem,
}

/// One shape.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Its name in marks.
    pub(crate) id: Cow<'static, str>,
    pub(crate) prefix: Cow<'static, str>,
    pub(crate) class: Class,
    /// Characters of the class that must follow the prefix.
    pub(crate) min: usize,
    pub(crate) kind: Kind,
}

const fn plain(id: &'static str, prefix: &'static str, class: Class, min: usize) -> Shape {
    of(id, prefix, class, min, Kind::Plain)
}

const fn authorization(prefix: &'static str) -> Shape {
    of("authorization", prefix, Class::Token, 12, Kind::Authorization)
}

const fn of(id: &'static str, prefix: &'static str, class: Class, min: usize, kind: Kind) -> Shape {
    Shape { id: Cow::Borrowed(id), prefix: Cow::Borrowed(prefix), class, min, kind }
}

/// Every shape. The numbers are the shortest that the issuers have documented, or a little less.
pub(crate) static SHAPES: &[Shape] = &[
    plain("anthropic-key", "sk-ant-", Class::Dash, 20),
    of("openai-key", "sk-", Class::Dash, 32, Kind::Digit),
    plain("stripe-key", "sk_live_", Class::Alnum, 16),
    plain("stripe-key", "sk_test_", Class::Alnum, 16),
    plain("stripe-key", "rk_live_", Class::Alnum, 16),
    plain("github-token", "ghp_", Class::Alnum, 36),
    plain("github-token", "gho_", Class::Alnum, 36),
    plain("github-token", "ghu_", Class::Alnum, 36),
    plain("github-token", "ghs_", Class::Alnum, 36),
    plain("github-token", "ghr_", Class::Alnum, 36),
    plain("github-token", "github_pat_", Class::Word, 22),
    plain("gitlab-token", "glpat-", Class::Dot, 20),
    plain("slack-token", "xoxb-", Class::Dash, 16),
    plain("slack-token", "xoxa-", Class::Dash, 16),
    plain("slack-token", "xoxp-", Class::Dash, 16),
    plain("slack-token", "xoxr-", Class::Dash, 16),
    plain("slack-token", "xoxs-", Class::Dash, 16),
    plain("slack-token", "xapp-", Class::Dash, 16),
    plain("aws-key", "AKIA", Class::Upper, 16),
    plain("aws-key", "ASIA", Class::Upper, 16),
    plain("google-key", "AIza", Class::Dash, 35),
    plain("google-token", "ya29.", Class::Dash, 20),
    plain("google-secret", "GOCSPX-", Class::Dash, 28),
    plain("npm-token", "npm_", Class::Alnum, 36),
    plain("huggingface-token", "hf_", Class::Alnum, 34),
    plain("pypi-token", "pypi-AgE", Class::Dash, 32),
    plain("sendgrid-key", "SG.", Class::Dot, 40),
    plain("groq-key", "gsk_", Class::Alnum, 40),
    plain("xai-key", "xai-", Class::Alnum, 40),
    plain("digitalocean-token", "dop_v1_", Class::Alnum, 64),
    plain("age-key", "AGE-SECRET-KEY-1", Class::Upper, 40),
    of("jwt", "eyJ", Class::Dot, 10, Kind::Jwt),
    authorization("Bearer "),
    authorization("bearer "),
    authorization("BEARER "),
    authorization("Basic "),
    authorization("basic "),
    authorization("Token "),
    authorization("token "),
    of("private-key", pem::BEGIN, Class::Token, 0, Kind::Pem),
];

/// Whether a shape is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShapeMatch {
    /// It is not there.
    No,
    /// It depends on bytes that have not come yet.
    More,
    /// It is there, and has at least this many bytes.
    Yes(usize),
}

impl Shape {
    /// Decides whether the shape, whose prefix stands at `at`, is there.
    pub(crate) fn look(&self, bytes: &[u8], at: usize) -> ShapeMatch {
        let before = bytes.get(at.saturating_sub(CONTEXT)..at).unwrap_or_default();
        let body = bytes.get(at + self.prefix.len()..).unwrap_or_default();
        let decided = match self.kind {
            Kind::Plain | Kind::Digit | Kind::Counted if !is_edge(before) => ShapeMatch::No,
            Kind::Plain | Kind::Digit | Kind::Counted => self.look_at_run(body),
            Kind::Authorization if !names_authorization(before) => ShapeMatch::No,
            Kind::Authorization => self.look_at_run(body),
            Kind::Jwt
                if !is_edge(before)
                    || before.last().is_some_and(|b| Class::Dash.has(*b) && !b.is_ascii_alphanumeric()) =>
            {
                ShapeMatch::No
            }
            Kind::Jwt => look_at_token(body),
            Kind::Pem => pem::look(body),
        };
        match decided {
            ShapeMatch::Yes(length) => ShapeMatch::Yes(self.prefix.len() + length),
            other => other,
        }
    }

    fn look_at_run(&self, body: &[u8]) -> ShapeMatch {
        let run = body.iter().take(self.min).take_while(|byte| self.class.has(**byte)).count();
        let Some(run) = body.get(..run) else { return ShapeMatch::No };
        if run.len() < self.min {
            return if run.len() == body.len() { ShapeMatch::More } else { ShapeMatch::No };
        }
        let digit = self.kind != Kind::Digit || run.iter().any(u8::is_ascii_digit);
        let mixed = self.kind == Kind::Counted || looks_random(run);
        if digit && mixed { ShapeMatch::Yes(run.len()) } else { ShapeMatch::No }
    }
}

/// Eight distinct characters from two of lower case, upper case and digits: no placeholder such as
/// `ghp_xxxxxxxx` or `YOUR_API_KEY`.
fn looks_random(run: &[u8]) -> bool {
    let mut seen = [false; 256];
    run.iter().for_each(|byte| {
        if let Some(slot) = seen.get_mut(usize::from(*byte)) {
            *slot = true;
        }
    });
    let distinct = seen.iter().filter(|seen| **seen).count();
    let has = |test: fn(&u8) -> bool| usize::from(run.iter().any(test));
    let mixed = has(u8::is_ascii_lowercase) + has(u8::is_ascii_uppercase) + has(u8::is_ascii_digit);
    distinct >= 8 && mixed >= 2
}

/// Whether a word may begin here: not inside another one (`task-…` holds `sk-`), unless what looks like the
/// end of a word is an escape (`\n` and `\u0022` in JSON, `%22` in a URL).
fn is_edge(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => true,
        [.., last] => !last.is_ascii_alphanumeric(),
        [] => true,
    }
}

/// Whether `authorization` and at most twelve characters of notation stand before.
fn names_authorization(before: &[u8]) -> bool {
    const NAME: &[u8] = b"authorization";
    let notation = before.iter().rev().take(12).take_while(|byte| b" \t\"'\\:=,[".contains(byte)).count();
    let end = before.len() - notation;
    let name = end.checked_sub(NAME.len()).and_then(|start| before.get(start..end));
    notation > 0 && name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}

fn look_at_token(body: &[u8]) -> ShapeMatch {
    const PART_MIN: usize = 10;
    let header = body.iter().take(JWT_HEADER_MAX).take_while(|byte| Class::Dash.has(**byte)).count();
    let Some(rest) = body.get(header..) else { return ShapeMatch::No };
    match rest {
        [] => ShapeMatch::More,
        [b'.', claims @ ..] if header >= PART_MIN => {
            let claim = claims.iter().take(PART_MIN).take_while(|byte| Class::Dash.has(**byte)).count();
            if claim == PART_MIN {
                ShapeMatch::Yes(header + 1 + claim)
            } else if claim == claims.len() {
                ShapeMatch::More
            } else {
                ShapeMatch::No
            }
        }
        _ => ShapeMatch::No,
    }
}
