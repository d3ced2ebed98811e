//! The page's own files. They need no build and name no other server.

/// A file: its path, its type, and its content.
pub(crate) struct Asset {
    path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! script {
    ($name:literal) => {
        Asset { path: concat!("/", $name), kind: SCRIPT, text: include_str!(concat!("../page/", $name)) }
    };
}

const ASSETS: &[Asset] = &[
    Asset { path: "/", kind: "text/html; charset=utf-8", text: include_str!("../page/index.html") },
    Asset { path: "/page.css", kind: "text/css; charset=utf-8", text: include_str!("../page/page.css") },
    Asset { path: "/icon.svg", kind: "image/svg+xml", text: include_str!("../page/icon.svg") },
    script!("page.js"),
    script!("home.js"),
    script!("dom.js"),
    script!("markdown.js"),
    script!("chat.js"),
    script!("views.js"),
];

/// The file at a path.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
