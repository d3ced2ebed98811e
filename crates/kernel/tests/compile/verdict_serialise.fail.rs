//! A verdict cannot be written down, so none can be read back.
use bailey_policy::Allowed;

fn write(allowed: &Allowed) -> Option<String> {
    serde_json::to_string(allowed).ok()
}

fn main() {
    let _ = write;
}
