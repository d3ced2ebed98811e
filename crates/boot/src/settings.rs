//! What it is told: flags, and before them `boot.conf` of the home, `name = value` lines.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// The longest file of settings, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// Where the daemon runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DaemonHost {
    /// As a process of this machine.
    Process { bailey: PathBuf },
    /// In a container.
    Container { engine: PathBuf, image: String, mounts: Vec<PathBuf>, options: Vec<String> },
}

/// All of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Absolute.
    pub(crate) home: PathBuf,
    pub(crate) place: DaemonHost,
    pub(crate) check: bool,
}

/// What may be said, each by its name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    home: Option<String>,
    bailey: Option<String>,
    container: Option<String>,
    engine: Option<String>,
    mounts: Vec<String>,
    options: Vec<String>,
    check: bool,
}

impl Options {
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let value = value.to_owned();
        match name {
            "home" => self.home = Some(value),
            "bailey" => self.bailey = Some(value),
            "container" => self.container = Some(value),
            "engine" => self.engine = Some(value),
            "mount" => self.mounts.push(value),
            "engine-option" => self.options.push(value),
            _ => return Err(format!("there is no option `{name}`: bailey-boot --help names all")),
        }
        Ok(())
    }

    fn words(&mut self, words: &[String]) -> Result<(), String> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                return Err(format!("`{word}` is no option: bailey-boot --help names all"));
            };
            match (name, name.split_once('=')) {
                ("check", _) => self.check = true,
                (_, Some((name, value))) => self.take(name, value)?,
                (name, None) => {
                    let value = words.next().ok_or_else(|| format!("`--{name}` lacks its value"))?;
                    self.take(name, value)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, text: &str) -> Result<(), String> {
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |why: String| format!("line {}: {why}", number + 1);
            let (name, value) =
                line.split_once('=').ok_or_else(|| at(format!("`{line}` is not `name = value`")))?;
            if name.trim() == "home" {
                return Err(at("the home is where this file lies".into()));
            }
            self.take(name.trim(), value.trim().trim_matches('"')).map_err(at)?;
        }
        Ok(())
    }
}

impl Settings {
    /// What flags and file say.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let mut flags = Options::default();
        flags.words(words)?;
        let is_data = |it: &PathBuf| it.is_absolute() && it.is_dir();
        let data = || Some(PathBuf::from(variable("XDG_DATA_HOME")?).join("bailey")).filter(is_data);
        let usual = || Some(PathBuf::from(variable("HOME")?).join(".bailey"));
        let home = flags.home.clone().or_else(|| variable("BAILEY_HOME")).map(PathBuf::from);
        let home = home.or_else(data).or_else(usual).ok_or("HOME is not set: use --home DIR")?;
        let home = std::path::absolute(&home).map_err(|error| format!("`{}`: {error}", home.display()))?;
        let path = home.join("boot.conf");
        let mut said = Options::default();
        match read(&path) {
            Ok(text) => said.file(&text).map_err(|why| format!("{}: {why}", path.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
        }
        said.words(words)?;
        let place = match said.container {
            Some(image) => DaemonHost::Container {
                engine: engine(said.engine)?,
                image,
                mounts: said.mounts.into_iter().map(PathBuf::from).collect(),
                options: said.options,
            },
            None => DaemonHost::Process { bailey: bailey(said.bailey)? },
        };
        Ok(Self { home, place, check: said.check })
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > BYTES_MAX {
        return Err(io::Error::other("it is longer than 64 KiB"));
    }
    fs::read_to_string(path)
}

fn bailey(said: Option<String>) -> Result<PathBuf, String> {
    let beside = || Some(env::current_exe().ok()?.parent()?.join("bailey")).filter(|path| path.is_file());
    let found = said.map(PathBuf::from).or_else(beside).or_else(|| in_path("bailey"));
    found.ok_or_else(|| "the program `bailey` is neither beside this one nor in PATH: --bailey FILE".into())
}

fn engine(said: Option<String>) -> Result<PathBuf, String> {
    let found = said.map(PathBuf::from).or_else(|| ["docker", "podman"].into_iter().find_map(in_path));
    let none = "there is no container engine: install Docker or Podman, or leave --container out";
    found.ok_or_else(|| none.into())
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|place| place.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn flags_and_lines_say_the_same() {
        let (mut one, mut other) = (Options::default(), Options::default());
        let words = [
            "--container",
            "bailey:1",
            "--engine=/usr/bin/podman",
            "--mount",
            "/srv",
            "--mount=/data",
            "--check",
        ];
        one.words(&words.map(str::to_owned)).unwrap();
        other
            .file("# mine\ncontainer = bailey:1\nengine = \"/usr/bin/podman\"\n\nmount=/srv\nmount = /data\n")
            .unwrap();
        other.check = true;
        assert_eq!(one, other);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let file = |text: &str| Options::default().file(text).unwrap_err();
        assert_eq!(
            file("\n\ncolour = red"),
            "line 3: there is no option `colour`: bailey-boot --help names all"
        );
        assert_eq!(file("what"), "line 1: `what` is not `name = value`");
        assert!(file("home = /x").contains("the home is where this file lies"));
        let words = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Options::default().words(&words).unwrap_err()
        };
        assert_eq!(words(&["--home"]), "`--home` lacks its value");
        assert!(words(&["start"]).contains("is no option"));
    }
}
