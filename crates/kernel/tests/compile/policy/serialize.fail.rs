use bailey_policy::Allowed;

fn write(allowed: &Allowed) {
    let _ = serde_json::to_string(allowed);
}

fn main() {
    let _ = write;
}
