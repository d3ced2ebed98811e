//! Keys that the network door puts into requests of commands: `[[network.key]]`.

use super::{ConfigError, document::Document, models};
use bailey_egress::{BoundKey, KeyForm, is_key_header};
use bailey_policy::{Method, UrlGlob};
use bailey_secrets::is_secret_name;
use serde::{Deserialize, Serialize};

/// The key of their tables.
const KEY: &str = "network.key";
/// The most keys that there may be.
const KEYS_MAX: usize = 64;
/// The methods that a key is for by default.
const METHODS: [&str; 2] = ["GET", "HEAD"];

/// One key, and the requests that it is put into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    /// The name of the secret.
    secret: String,
    /// A URL of the server.
    at: String,
    methods: Option<Vec<String>>,
    paths: Option<Vec<String>>,
    header: Option<String>,
    prefix: Option<String>,
    user: Option<String>,
    variable: Option<String>,
}

/// The names of the secrets.
pub(super) fn names(keys: &[Key]) -> Vec<&str> {
    keys.iter().map(|key| &*key.secret).collect()
}

/// Turns the keys into the form that the network door takes. `private` are the owner's own places.
pub(super) fn bound(
    document: &Document,
    keys: &[Key],
    private: &[String],
) -> Result<Vec<BoundKey>, ConfigError> {
    if keys.len() > KEYS_MAX {
        let message = format!("there are {} keys, and {KEYS_MAX} at most", keys.len());
        return Err(document.mistake(KEY, message));
    }
    let mut bound: Vec<BoundKey> = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        let mistake = |why| document.mistake_in(KEY, place, format!("`{}`: {why}", key.secret));
        let next = key.bound(private).map_err(mistake)?;
        // A variable holds one stand-in: the stand-in of the other secret would be missing.
        if let Some(other) = bound.iter().find(|it| it.variable == next.variable && it.secret != next.secret)
        {
            let why = format!(
                "the variable `{}` holds the stand-in of `{}` already: write another `variable`",
                other.variable, other.secret
            );
            return Err(mistake(why));
        }
        bound.push(next);
    }
    Ok(bound)
}

impl Key {
    fn bound(&self, private: &[String]) -> Result<BoundKey, String> {
        let variable = self.variable.clone().unwrap_or_else(|| self.secret.clone());
        if !is_variable(&variable) {
            return Err(format!("`{variable}` is no name of a variable: write `variable = \"NAME\"`"));
        }
        if is_taken(&variable) {
            return Err(format!("`{variable}` has a meaning of its own inside: write another `variable`"));
        }
        models::is_place(&self.at).map_err(|why| {
            format!("`at` is not the URL of a server: {why}; parts of it are named by `paths`")
        })?;
        let is_open = self.at.starts_with("http://") && !private.contains(&self.at);
        if is_open {
            return Err(format!(
                "`{}` is not encrypted: a key goes to `https://` only, or to a place that `network.private` names in these words",
                self.at
            ));
        }
        let methods = self.methods.clone().unwrap_or_else(|| METHODS.map(str::to_owned).to_vec());
        let methods = methods.iter().map(|method| Method::new(method)).collect::<Result<Vec<_>, _>>();
        let methods = methods.map_err(|error| error.to_string())?;
        if methods.iter().any(|method| method.as_str() == "WEBSOCKET") {
            return Err(
                "what passes after a switch to WebSocket cannot be looked through: no key goes there".into(),
            );
        }
        let paths = self.paths.clone().unwrap_or_else(|| vec!["/**".into()]);
        let path = |text: &String| UrlGlob::new(text).map_err(|error| format!("`{text}`: {error}"));
        let paths: Vec<UrlGlob> = paths.iter().map(path).collect::<Result<_, _>>()?;
        if methods.is_empty() || paths.is_empty() {
            return Err("an empty list of methods or paths is a key for nothing: leave the table out".into());
        }
        let header = self.header.clone().unwrap_or_else(|| "authorization".into()).to_ascii_lowercase();
        if !is_key_header(&header) {
            return Err(format!(
                "`{header}` is no header for a key: it is none at all, or one that the door removes or sets itself"
            ));
        }
        let is_usual = header == "authorization";
        let form = match (&self.user, &self.prefix) {
            (Some(_), Some(_)) => return Err("`user` and `prefix` are two forms: write one of them".into()),
            (Some(_), None) if !is_usual => return Err("a `user` stands in the header authorization".into()),
            (Some(user), None) if !is_user(user) => {
                return Err(format!("`{user}` is no user: letters, digits and `-_.@+` are"));
            }
            (Some(user), None) => KeyForm::Basic(user.clone()),
            (None, Some(prefix)) => KeyForm::Prefixed(prefix.clone()),
            (None, None) => KeyForm::Prefixed(if is_usual { "Bearer ".into() } else { String::new() }),
        };
        Ok(BoundKey {
            secret: self.secret.clone(),
            variable,
            at: self.at.clone(),
            methods,
            paths,
            header,
            form,
        })
    }
}

fn is_variable(name: &str) -> bool {
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether programs or the walls give a variable of this name another meaning than a key.
fn is_taken(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "TERM", "ENV", "IFS", "SHELL", "PWD", "EDITOR",
        "PAGER",
    ];
    const BEGINNINGS: [&str; 11] =
        ["LD_", "GIT_", "BASH", "NODE_", "PYTHON", "CARGO_", "SSL_", "NPM_", "PIP_", "CURL_", "DENO_"];
    let upper = name.to_ascii_uppercase();
    !is_secret_name(&upper)
        && (NAMES.contains(&upper.as_str())
            || upper.ends_with("PROXY")
            || BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning)))
}

fn is_user(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte))
}
