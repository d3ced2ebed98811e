//! The name of a browser in a list that a person reads. All user agents begin alike, with names of other
//! programs.

/// How many characters are kept of an unknown user agent.
const CHARS_MAX: usize = 80;

/// The sign of each known browser in its user agent. A browser comes before the browsers whose signs it
/// contains, too.
const BROWSERS: &[(&str, &str)] = &[
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("Vivaldi/", "Vivaldi"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Firefox/", "Firefox"),
    ("HeadlessChrome/", "Chrome (headless)"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
];
/// The signs of systems, in the same way.
const SYSTEMS: &[(&str, &str)] = &[
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// The browser and its system. For any other program, the beginning of its user agent.
pub(crate) fn called(agent: &str) -> String {
    let browser = BROWSERS.iter().find_map(|(sign, name)| {
        let (_, version) = agent.split_once(sign)?;
        let version: String = version.chars().take_while(char::is_ascii_digit).take(6).collect();
        (!version.is_empty()).then(|| format!("{name} {version}"))
    });
    let system = SYSTEMS.iter().find(|(sign, _)| agent.contains(sign));
    match (browser, system) {
        (Some(browser), Some((_, system))) => format!("{browser}, {system}"),
        _ => agent.chars().take(CHARS_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::called;

    #[test]
    fn browsers_are_told_from_each_other() {
        let webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
        for (agent, name) in [
            (format!("Mozilla/5.0 (X11; Linux x86_64) {webkit} Chrome/149.0.0.0 Safari/537.36"), "Chrome 149, Linux"),
            (
                format!("Mozilla/5.0 (Windows NT 10.0; Win64; x64) {webkit} Chrome/149.0.0.0 Safari/537.36 Edg/149.0.0.0"),
                "Edge 149, Windows",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned(),
                "Firefox 140, Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1".to_owned(),
                "Safari 18, iPhone",
            ),
            (
                format!("Mozilla/5.0 (Linux; Android 10; K) {webkit} Chrome/149.0.0.0 Mobile Safari/537.36"),
                "Chrome 149, Android",
            ),
            ("curl/8.5.0".to_owned(), "curl/8.5.0"),
            (String::new(), ""),
        ] {
            assert_eq!(called(&agent), name);
        }
        assert_eq!(called(&"é".repeat(300)).chars().count(), 80, "no more than a list can hold");
        assert_eq!(called(&format!("Linux Chrome/{}", "1".repeat(99))), "Chrome 111111, Linux");
    }
}
