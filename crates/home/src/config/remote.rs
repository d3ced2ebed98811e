//! The settings that may be changed from a browser: a closed list. No setting of it loosens a protection. A
//! budget may become lower there, and never higher.

use super::{Config, Origin};
use bailey_protocol::Money;
use serde_json::Value;

/// How a setting may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// To any valid value.
    Any,
    /// To a lower number, or to a first one.
    Lower,
}

/// All of them.
const CHANGES: [(&str, Change); 15] = [
    ("model", Change::Any),
    ("models.summary", Change::Any),
    ("approvals.answer_seconds", Change::Any),
    ("limits.call_tokens", Change::Lower),
    ("limits.turn_tokens", Change::Lower),
    ("limits.session_tokens", Change::Lower),
    ("limits.task_tokens", Change::Lower),
    ("limits.day_tokens", Change::Lower),
    ("limits.call_money", Change::Lower),
    ("limits.turn_money", Change::Lower),
    ("limits.session_money", Change::Lower),
    ("limits.task_money", Change::Lower),
    ("limits.day_money", Change::Lower),
    ("limits.tool_calls", Change::Lower),
    ("limits.reply_tokens", Change::Lower),
];

impl Config {
    /// Whether a browser may give this setting this value, which is still to be checked as any other.
    ///
    /// # Errors
    /// When it may not; the text says why, and where to change it.
    pub fn may_change_from_afar(&self, key: &str, value: &str) -> Result<(), String> {
        let at_the_machine = "change it at the machine, with `bailey config set` or `bailey config edit`";
        let Some((_, change)) = CHANGES.iter().find(|(known, _)| *known == key) else {
            return Err(format!("`{key}` cannot be changed here; {at_the_machine}"));
        };
        if let Origin::Variable(name) = self.origin(key) {
            return Err(format!("`{key}` comes from the variable {name} of the environment, so it stays"));
        }
        if key.starts_with("model") && value.trim_start_matches([' ', '"', '\'']).starts_with("replay:") {
            return Err(format!(
                "a recording is a file of this machine, so it is not chosen here; {at_the_machine}"
            ));
        }
        if *change == Change::Any {
            return Ok(());
        }
        let values = self.values();
        let present = values.iter().find(|(known, _)| known == key).map_or(&Value::Null, |(_, value)| value);
        match is_lower(value.trim(), present) {
            Some(true) => Ok(()),
            Some(false) => Err(format!(
                "`{key}` is {} now, and here it can only become lower; {at_the_machine}",
                present.as_str().map_or_else(|| present.to_string(), str::to_owned)
            )),
            None => Err(format!(
                "`{value}` is no value of `{key}`; write {}",
                if key.ends_with("_money") { "such as 2.50 USD" } else { "a number" }
            )),
        }
    }
}

/// Whether a number or an amount of money is at most the present one. `None` where it is neither.
fn is_lower(value: &str, present: &Value) -> Option<bool> {
    if let Ok(number) = value.parse::<u64>() {
        return match present {
            Value::Null => Some(true),
            present => present.as_u64().map(|present| number <= present),
        };
    }
    let money = value.parse::<Money>().ok()?;
    match present {
        Value::Null => Some(true),
        present => {
            let present = present.as_str()?.parse::<Money>().ok()?;
            Some(present.currency == money.currency && money.nanos <= present.nanos)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Document};
    use std::path::Path;

    fn config(text: &str) -> Config {
        let document = Document::parse(Path::new("config.toml"), text.to_owned()).unwrap();
        let mut config = Config::default();
        config.take(&document).unwrap();
        config
    }

    #[test]
    fn what_is_changed_from_afar_is_of_a_closed_list_and_a_limit_only_becomes_lower() {
        let config = config("[limits]\nturn_tokens = 1000\nday_money = \"5.00 USD\"\n");
        let may = |key, value| config.may_change_from_afar(key, value);
        for (key, value) in [
            ("model", "test/model"),
            ("approvals.answer_seconds", "60"),
            ("limits.turn_tokens", "1000"),
            ("limits.turn_tokens", "10"),
            ("limits.call_tokens", "10"),
            ("limits.day_money", "4.99 USD"),
            ("limits.call_money", "1 EUR"),
        ] {
            assert_eq!(may(key, value), Ok(()), "{key}");
        }
        for (key, value) in [
            ("limits.turn_tokens", "1001"),
            ("limits.session_tokens", "4000001"),
            ("limits.day_money", "5.01 USD"),
            ("limits.day_money", "1.00 EUR"),
            ("limits.day_money", "1"),
            ("limits.turn_tokens", "1.00 USD"),
            ("limits.turn_tokens", "-1"),
            ("limits.turn_tokens", "inf"),
            ("limits.secret_hits", "1"),
            ("network.private", "[\"http://127.0.0.1:1\"]"),
            ("page.listen", "0.0.0.0:1"),
            ("approvals.review", "auto"),
            ("approvals.compliance", "false"),
            ("models.fallback", "[\"a/b\"]"),
            ("model", "replay:/etc/passwd"),
            ("model", " \"replay:/etc/passwd\""),
            ("providers.x.base_url", "http://evil.example"),
            ("\"model\"", "test/model"),
            ("model ", "test/model"),
            ("", ""),
        ] {
            assert!(may(key, value).is_err(), "{key} = {value}");
        }
    }
}
