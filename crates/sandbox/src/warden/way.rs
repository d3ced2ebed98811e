//! The way of a command to the network: variables that programs read, which lead them to the door on their
//! loopback and say whom to trust there.

use crate::{
    plan::{AUTHORITY, NODE},
    wire::Shown,
};
use bailey_kernel::StandIn;
use std::collections::BTreeMap;

/// Who the door is on its loopback, for programs that want a user beside the pass.
const USER: &str = "bailey";

/// Variables that name a proxy. Programs read one or the other.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// Hosts that no proxy is asked for.
const NO_PROXIES: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Those that are the session's own.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Variables that name a file of certificate authorities: of OpenSSL and what follows it, curl, git, Python,
/// Node.js, npm, pip, cargo, Deno, AWS.
const AUTHORITIES: [&str; 11] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "PIP_CERT",
    "UV_SSL_CERT_FILE",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "AWS_CA_BUNDLE",
];

/// Where other tools put the packages that they fetch.
const FETCHED: [(&str, &str); 8] = [
    ("UV_CACHE_DIR", "/tmp/.uv"),
    ("YARN_CACHE_FOLDER", "/tmp/.yarn"),
    ("npm_config_store_dir", "/tmp/.pnpm-store"),
    ("GOMODCACHE", "/tmp/.gomod"),
    ("NUGET_PACKAGES", "/tmp/.nuget"),
    ("COURSIER_CACHE", "/tmp/.coursier"),
    ("COMPOSER_CACHE_DIR", "/tmp/.composer"),
    ("PUB_CACHE", "/tmp/.pub-cache"),
];

/// The variables of a command for which the door listens at this port.
pub(super) fn variables(port: u16, shown: &Shown) -> BTreeMap<String, String> {
    let Shown { pass, stand_ins, own_hosts } = shown;
    let proxy = format!("http://{USER}:{pass}@127.0.0.1:{port}");
    let to = |names: &[&'static str], value: &str| {
        names.iter().map(|name| ((*name).to_owned(), value.to_owned())).collect::<Vec<_>>()
    };
    // Where a place of the owner's has one of these names, the session's own servers are found by another.
    let loopback =
        LOOPBACK.iter().filter(|name| !own_hosts.iter().any(|host| host.trim_matches(['[', ']']) == **name));
    let here = to(&NO_PROXIES, &loopback.copied().collect::<Vec<_>>().join(","));
    let trusted = to(&AUTHORITIES, AUTHORITY);
    // What they fetch would go to folders of the user's, which are read here and not written.
    let npm = to(&["npm_config_cache"], "/tmp/.npm");
    let pip = to(&["PIP_CACHE_DIR"], "/tmp/.pip");
    let cargo = to(&["CARGO_HOME"], "/tmp/.cargo");
    let others = FETCHED.iter().flat_map(|(name, at)| to(&[name], at));
    // Node.js looks at the variables of a proxy only when it is told to, and where it is old it is to be
    // helped.
    let node = to(&["NODE_USE_ENV_PROXY"], "1");
    let old = to(&["NODE_OPTIONS"], &format!("--require={NODE}"));
    let keys = stand_ins.iter().map(|own| (own.variable.clone(), own.value.clone()));
    to(&PROXIES, &proxy)
        .into_iter()
        .chain(here)
        .chain(trusted)
        .chain(npm)
        .chain(pip)
        .chain(cargo)
        .chain(others)
        .chain(node)
        .chain(old)
        .chain(keys)
        .collect()
}

/// Settings of git by which it finds the passwords that stand in for keys, each at its own server.
pub(super) fn logins(stand_ins: &[StandIn]) -> Vec<(String, String)> {
    let login = |own: &StandIn| {
        let (server, user) = own.user.as_ref()?;
        // Neither is the world's: the owner wrote both into the configuration, where their letters were
        // looked at.
        let helper = format!("!printf 'username={user}\\npassword=%s\\n' \"${}\"; :", own.variable);
        Some((format!("credential.{server}.helper"), helper))
    };
    stand_ins.iter().filter_map(login).collect()
}
