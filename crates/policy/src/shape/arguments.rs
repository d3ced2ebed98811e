//! The shape of what another program gives to a tool: JSON that every reader understands alike.

use super::{DEPTH_MAX, KEYS_MAX, is_deceptive, plain};
use crate::tool::is_tool_name;
use alloc::{
    collections::BTreeSet,
    format,
    string::{String, ToString},
};
use bailey_protocol::ToolUse;
use core::fmt;
use serde::de::{self, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The largest whole number that every reader of JSON keeps (RFC 7493, 2.2).
const WHOLE_MAX: u64 = 1 << 53;

/// Says why a use of another program's tool cannot be judged.
pub(super) fn of_tool(tool: &ToolUse) -> Result<(), String> {
    let name = plain(&tool.name);
    if !is_tool_name(&tool.name) {
        return Err(format!("`{name}` is no tool's name: it has letters, digits and `_-./:@+` only"));
    }
    if tool.effect.is_none() {
        return Err(format!("nobody declared the tool `{name}` when the task began"));
    }
    if !tool.args.trim_start().starts_with('{') {
        return Err("the arguments of a tool are a JSON object".into());
    }
    let mut keys = 0;
    let mut json = serde_json::Deserializer::from_str(&tool.args);
    let walked = Walk { depth: 0, keys: &mut keys }.deserialize(&mut json).and_then(|()| json.end());
    walked.map_err(|error| format!("the arguments cannot be judged: {error}"))
}

/// Goes through one value.
struct Walk<'a> {
    depth: usize,
    /// How many names there were so far, in all objects together.
    keys: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Walk<'_> {
    fn deeper<E: Error>(&mut self) -> Result<Walk<'_>, E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom(format!("nested more than {DEPTH_MAX} deep")));
        }
        Ok(Walk { depth: self.depth + 1, keys: self.keys })
    }

    fn name<E: Error>(&mut self, name: &str) -> Result<(), E> {
        *self.keys += 1;
        if *self.keys > KEYS_MAX {
            return Err(E::custom(format!("more than {KEYS_MAX} names")));
        }
        match name.chars().find(|c| is_deceptive(*c)) {
            Some(c) => {
                let shown = plain(name);
                Err(E::custom(format!(
                    "control, bidi or invisible character {} in the name `{shown}`",
                    c.escape_unicode()
                )))
            }
            None => Ok(()),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        whole(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        whole(number.unsigned_abs())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        // From there on every number is a whole one.
        #[expect(clippy::cast_precision_loss, reason = "a power of two is kept exactly")]
        let most = WHOLE_MAX as f64;
        // One just beyond is read as this one.
        if number.is_finite() && -most < number && number < most { Ok(()) } else { Err(too_large()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while list.next_element_seed(Walk { depth: inner.depth, keys: &mut *inner.keys })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut inner = self.deeper()?;
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            inner.name(&name)?;
            // Some readers take names for one that differ in case only.
            if let Some(twice) = seen.replace(name.to_lowercase()) {
                return Err(de::Error::custom(format!("the name `{}` stands there twice", plain(&twice))));
            }
            map.next_value_seed(Walk { depth: inner.depth, keys: &mut *inner.keys })?;
        }
        Ok(())
    }
}

fn whole<E: Error>(number: u64) -> Result<(), E> {
    if number <= WHOLE_MAX { Ok(()) } else { Err(too_large()) }
}

fn too_large<E: Error>() -> E {
    E::custom("a number beyond 2^53, which readers of JSON take for different ones".to_string())
}
