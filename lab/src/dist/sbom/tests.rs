//! The bill of materials against the fields that SPDX 2.3 demands, and against the lock file.

use super::{Lock, document};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use xtask::{metadata::Metadata, root};

fn written() -> Value {
    let lock: Lock = toml::from_str(&std::fs::read_to_string(root().join("Cargo.lock")).unwrap()).unwrap();
    document(&Metadata::read().unwrap(), &lock, "2026-01-02T03:04:05Z").unwrap()
}

/// What is wrong with a document: clauses 6 (the document), 7 (packages), 10 (licences) and 11
/// (relationships).
fn mistakes(document: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: String| wrong.extend((!holds).then_some(what));
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    must(text(document, "spdxVersion") == "SPDX-2.3", "6.1 version".into());
    must(text(document, "dataLicense") == "CC0-1.0", "6.2 licence of the data".into());
    must(text(document, "SPDXID") == "SPDXRef-DOCUMENT", "6.3 identifier".into());
    must(!text(document, "name").is_empty(), "6.4 name".into());
    let namespace = text(document, "documentNamespace");
    must(namespace.starts_with("https://") && !namespace.contains('#'), "6.5 namespace".into());
    let creators = document["creationInfo"]["creators"].as_array().cloned().unwrap_or_default();
    let is_creator = |creator: &Value| creator.as_str().is_some_and(|text| text.starts_with("Tool: "));
    must(!creators.is_empty() && creators.iter().all(is_creator), "6.8 creator".into());
    let created = text(&document["creationInfo"], "created");
    must(created.len() == 20 && created.ends_with('Z') && created.contains('T'), "6.9 created".into());

    let mut known = BTreeSet::from(["SPDXRef-DOCUMENT".to_owned()]);
    for package in document["packages"].as_array().into_iter().flatten() {
        let id = text(package, "SPDXID");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        let is_id =
            id.strip_prefix("SPDXRef-").is_some_and(|rest| !rest.is_empty() && rest.chars().all(plain));
        must(is_id, format!("7.2 identifier {id}"));
        must(
            !text(package, "name").is_empty() && !text(package, "versionInfo").is_empty(),
            format!("7.1 name of {id}"),
        );
        must(!text(package, "downloadLocation").is_empty(), format!("7.7 location of {id}"));
        must(package["filesAnalyzed"] == json!(false), format!("7.8 files of {id}"));
        let licence = text(package, "licenseDeclared");
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| plain(c) || "()+".contains(c));
        must(
            !licence.is_empty() && licence.split(' ').all(is_word),
            format!("10.1 licence of {id}: {licence}"),
        );
        for sum in package["checksums"].as_array().into_iter().flatten() {
            let value = text(sum, "checksumValue");
            let is_hex = value.len() == 64 && value.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
            must(sum["algorithm"] == "SHA256" && is_hex, format!("7.10 checksum of {id}"));
        }
        must(known.insert(id.clone()), format!("7.2 {id} is there twice"));
    }
    let relations = document["relationships"].as_array().cloned().unwrap_or_default();
    must(relations.iter().any(|it| it["relationshipType"] == "DESCRIBES"), "11.1 describes nothing".into());
    for relation in &relations {
        for side in ["spdxElementId", "relatedSpdxElement"] {
            let id = text(relation, side);
            must(known.contains(&id), format!("11.1 {id} is no element"));
        }
    }
    wrong
}

#[test]
fn the_bill_has_the_fields_that_spdx_demands() {
    let mut bill = written();
    assert_eq!(mistakes(&bill), Vec::<String>::new());
    // The control: each of these is seen.
    bill["dataLicense"] = json!("MIT");
    bill["packages"][0]["SPDXID"] = json!("SPDXRef-a b");
    bill["packages"][1]["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": "00" }]);
    let wrong = mistakes(&bill).join("\n");
    for clause in ["6.2", "7.2", "7.10", "11.1"] {
        assert!(wrong.contains(clause), "{clause} is missing in:\n{wrong}");
    }
}

#[test]
fn every_crate_from_a_registry_has_the_digest_of_the_lock_file() {
    let bill = written();
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = bill["packages"].as_array().unwrap();
    let (own, foreign): (Vec<&Value>, Vec<&Value>) =
        packages.iter().partition(|package| package["name"].as_str().unwrap().starts_with("bailey"));
    assert!(own.len() >= 10 && foreign.len() >= 50, "{} own, {} foreign", own.len(), foreign.len());
    for package in foreign {
        let sum = package["checksums"][0]["checksumValue"].as_str().expect("a digest");
        assert!(lock.contains(&format!("checksum = \"{sum}\"")), "{package}");
        assert_eq!(package["externalRefs"][0]["referenceType"], "purl", "{package}");
    }
}
