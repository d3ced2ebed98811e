//! The one program that all fuzz targets are in; `BAILEY_FUZZ_TARGET` names the one to run, the arguments are
//! libFuzzer's own.

#![no_main]

use bailey_fuzz::Target;
use std::sync::OnceLock;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("BAILEY_FUZZ_TARGET").unwrap_or_default();
        let known = || bailey_fuzz::TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
        let target = bailey_fuzz::find(&name);
        let target = target.unwrap_or_else(|| panic!("BAILEY_FUZZ_TARGET is `{name}`, and there are {}", known()));
        TARGET.get_or_init(|| target);
    },
    |data: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.run)(data);
        }
    }
);
