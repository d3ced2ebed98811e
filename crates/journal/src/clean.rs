//! JSON as it is stored: with every string past the redactor, one by one, because a secret with a quote in it
//! looks different inside JSON.

use bailey_protocol::Blob;
use bailey_secrets::Redactor;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A document that is redacted as it is written, so that a large one is not copied before.
pub(crate) struct Clean<'a> {
    pub(crate) value: &'a Value,
    pub(crate) redactor: &'a Redactor,
}

impl Serialize for Clean<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { value, redactor } = *self;
        let clean = |value| Self { value, redactor };
        match value {
            Value::String(text) => serializer.serialize_str(&redactor.redact(text).text),
            Value::Array(items) => serializer.collect_seq(items.iter().map(clean)),
            Value::Object(fields) => match blob(fields) {
                // Bytes are redacted as bytes: a mark inside Base64 could not be read back.
                Some(Blob(bytes)) => Blob(redactor.redact_bytes(&bytes).into_owned()).serialize(serializer),
                None => serializer.collect_map(fields.iter().map(|(name, value)| (name, clean(value)))),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => value.serialize(serializer),
        }
    }
}

/// The bytes, where this is a [`Blob`] that is no UTF-8.
fn blob(fields: &Map<String, Value>) -> Option<Blob> {
    let is_blob = fields.len() == 1 && fields.contains_key("base64");
    is_blob.then(|| serde_json::from_value(Value::Object(fields.clone())).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::Clean;
    use bailey_protocol::Blob;
    use bailey_secrets::{Redactor, Secret, Vault};
    use serde_json::json;

    const SECRET: &str = "tr0ub4dor\"&3-and-more";

    #[test]
    fn every_string_and_every_blob_is_cleaned_and_nothing_else() {
        let vault: Vault = [("KEY".to_owned(), Secret::new(SECRET.into()))].into_iter().collect();
        let redactor = Redactor::new(&vault);
        let bytes = |before: &[u8]| Blob([before, SECRET.as_bytes()].concat());
        let value = json!({
            "text": format!("it is {SECRET}"),
            "list": [null, true, 7, "plain", { "deep": SECRET }],
            "bytes": bytes(b"\xff"),
            "no_bytes": { "base64": "plain", "two": 2 },
        });
        let clean = serde_json::to_value(Clean { value: &value, redactor: &redactor }).unwrap();
        let mark = |text: &str| redactor.redact(text).text.into_owned();
        assert_ne!(mark(SECRET), SECRET);
        assert_eq!(clean["text"], mark(&format!("it is {SECRET}")));
        assert_eq!(clean["list"], json!([null, true, 7, "plain", { "deep": mark(SECRET) }]));
        let blob: Blob = serde_json::from_value(clean["bytes"].clone()).unwrap();
        assert_eq!(blob.0, *redactor.redact_bytes(&bytes(b"\xff").0));
        assert_eq!(clean["no_bytes"], value["no_bytes"]);
    }
}
