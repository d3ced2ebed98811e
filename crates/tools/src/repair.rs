//! Arguments that do not fit a tool's schema, though the schema leaves them one meaning: `"30"` for a number,
//! a list in a string, a name that other agents use. They are repaired here, before anything is planned,
//! decided or shown. A value that fits its schema stays as it is. A value that could mean two things is left
//! for the check that refuses it.

use crate::{aliases, arguments::misfit};
use serde_json::{Map, Value};

/// A value for a parameter.
enum Meant {
    This(Value),
    /// The parameter was not given.
    Nothing,
    /// No meaning, or more than one.
    Unclear(Value),
}

/// The arguments as they are meant. `known` are the schema's parameters, in order.
///
/// # Errors
/// Parameters that were given twice, by two names and with two values.
pub(crate) fn repair(
    tool: &str,
    schema: &Value,
    known: &[String],
    given: Map<String, Value>,
) -> Result<Map<String, Value>, Vec<String>> {
    let property = |name: &str| schema.get("properties").and_then(|all| all.get(name));
    let is_required = |name: &str| {
        let mut required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        required.any(|required| required == name)
    };
    let mut repaired = Map::new();
    let mut rest = Vec::new();
    for (name, value) in given {
        let Some(schema) = property(&name) else {
            rest.push((name, value));
            continue;
        };
        match meant(schema, value, is_required(&name)) {
            Meant::This(value) => drop(repaired.insert(name, value)),
            Meant::Nothing => {}
            Meant::Unclear(value) => rest.push((name, value)),
        }
    }
    rest.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let mut twice = Vec::new();
    for (name, value) in rest {
        let meanings: Vec<&String> = aliases::meanings(tool, known, &name).collect();
        let fits = |real: &&&String| property(real).is_some_and(|schema| misfit(schema, &value).is_none());
        let can_fit =
            |real: &&&String| property(real).is_some_and(|schema| single(schema, value.clone()).is_ok());
        let real = meanings.iter().find(fits).or_else(|| meanings.iter().find(can_fit));
        // One that fits no meaning is refused by its own name here.
        let real = real.or_else(|| meanings.first().filter(|_| property(&name).is_none()));
        let Some((real, schema)) = real.and_then(|real| Some(((*real).clone(), property(real)?))) else {
            repaired.insert(name, value);
            continue;
        };
        let value = match meant(schema, value, is_required(&real)) {
            Meant::This(value) | Meant::Unclear(value) => value,
            Meant::Nothing => continue,
        };
        match repaired.get(&real) {
            Some(other) if *other != value => twice
                .push(format!("`{name}` is taken for `{real}`, and both are given with different values")),
            _ => drop(repaired.insert(real, value)),
        }
    }
    if twice.is_empty() { Ok(repaired) } else { Err(twice) }
}

fn meant(schema: &Value, value: Value, is_required: bool) -> Meant {
    if !is_required && is_empty(&value) && !may_be_empty(schema, &value) {
        return Meant::Nothing;
    }
    match single(schema, value) {
        Ok(value) => Meant::This(value),
        Err(value) => Meant::Unclear(value),
    }
}

/// Whether a value says that there is no value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => matches!(text.trim(), "" | "null"),
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether such a value says something of its own here.
fn may_be_empty(schema: &Value, value: &Value) -> bool {
    let asks_for_more = || ["minLength", "minItems"].iter().any(|least| schema.get(least).is_some());
    let is_null = value == "null";
    misfit(schema, value).is_none() && (is_null || !asks_for_more())
}

/// The one value that this can mean; the value itself where it means no value or several.
fn single(schema: &Value, value: Value) -> Result<Value, Value> {
    if misfit(schema, &value).is_none() {
        return Ok(value);
    }
    let wanted = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match (wanted, value) {
        ("integer", Value::Number(number)) => whole(&number).ok_or(Value::Number(number)),
        // A decimal fraction has other spellings as text (1.10), an integer has one.
        ("string", Value::Number(number)) if number.is_i64() || number.is_u64() => {
            Ok(Value::String(number.to_string()))
        }
        ("array", Value::Array(items)) => all_or(items, |items| {
            let items = items.into_iter().map(|item| single(schema.get("items")?, item).ok());
            items.collect::<Option<Vec<Value>>>().map(Value::Array)
        }),
        ("object", Value::Object(items)) => all_or(items, |items| {
            let inner = schema.get("additionalProperties")?;
            let items = items.into_iter().map(|(name, item)| Some((name, single(inner, item).ok()?)));
            items.collect::<Option<Map<String, Value>>>().map(Value::Object)
        }),
        ("integer" | "boolean" | "array" | "object", Value::String(text)) => {
            from_text(schema, wanted, &text).ok_or(Value::String(text))
        }
        (_, value) => Err(value),
    }
}

/// A list or an object with each of its values as it is meant, or as it was where one of them is unclear.
fn all_or<T: Clone + Into<Value>>(
    items: T,
    repaired: impl FnOnce(T) -> Option<Value>,
) -> Result<Value, Value> {
    repaired(items.clone()).ok_or_else(|| items.into())
}

/// 30 for 30.0.
fn whole(number: &serde_json::Number) -> Option<Value> {
    number.as_f64()?.to_string().parse::<u64>().ok().map(Value::from)
}

/// The value in a string that stands where something else is wanted.
fn from_text(schema: &Value, wanted: &str, text: &str) -> Option<Value> {
    let text = text.trim();
    let encoded = crate::arguments::decode(text).ok().filter(|value| !value.is_string());
    let encoded = encoded.and_then(|value| single(schema, value).ok());
    encoded.or_else(|| match wanted {
        "boolean" if text.eq_ignore_ascii_case("true") => Some(true.into()),
        "boolean" if text.eq_ignore_ascii_case("false") => Some(false.into()),
        "array" if is_one_word(text) => Some(Value::Array(vec![text.into()])),
        _ => None,
    })
}

/// Whether a text can be one item of a list only: no command line, no list with commas, nothing of a shell's.
fn is_one_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/@:+=~%".contains(c);
    !text.is_empty() && text != "null" && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
