//! A draft of the home's rules: its rule files as they lie there, with some replaced, added or taken away.

use anyhow::{Context as _, Result, bail};
use bailey_home::{config::Config, home::Home};
use bailey_policy::{
    DEFAULT_RULES, Policy,
    file::{Format, Parsed, RuleFileError, Texts},
};
use bailey_session::{compose, exit::Mistyped, extensions::Extensions};
use bailey_terminal::print::{Printer, Style};
use serde_json::json;
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

/// What a home without rule files goes by.
pub(crate) const DEFAULT: &str = "default.toml";

/// The longest rule file over standard input, in bytes.
const STDIN_BYTES_MAX: u64 = 1 << 20;

/// The rule files of the home, and what they would become.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The rules in force.
    pub old: Texts,
    /// The rules of the draft.
    pub new: Texts,
}

impl Draft {
    /// The home's own rule files, and nothing changed yet.
    pub fn of(home: &Home) -> Result<Self> {
        let old = Texts::of_dir(&home.policy())?;
        Ok(Self { new: old.clone(), old })
    }

    /// Lays a rule file, or all of a folder, over them, each by its name.
    pub fn lay(&mut self, path: &Path) -> Result<()> {
        if !path.is_dir() {
            return Ok(self.new.lay(path)?);
        }
        let mut laid = 0;
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(path).with_context(|| format!("cannot read `{}`", path.display()))? {
            files.push(entry?.path());
        }
        files.sort();
        for file in files.iter().filter(|file| Format::of(&file.to_string_lossy()).is_some()) {
            self.new.lay(file)?;
            laid += 1;
        }
        if laid == 0 {
            bail!("`{}` has no rule files: their names end in `.toml`, `.yaml` or `.yml`", path.display());
        }
        Ok(())
    }

    /// Lays a rule file over them under this name, or its own; the name. `-` is what comes over standard
    /// input.
    pub fn lay_as(&mut self, path: &Path, name: Option<&str>) -> Result<String> {
        if path == Path::new("-") {
            let missing = || Mistyped("say what the file is called in the home: --name NAME.toml".into());
            let name = name.ok_or_else(missing)?;
            let mut text = String::new();
            let read = std::io::stdin().take(STDIN_BYTES_MAX + 1).read_to_string(&mut text);
            read.context("standard input cannot be read as text")?;
            if text.len() as u64 > STDIN_BYTES_MAX {
                bail!("standard input has more than {} KiB: that is no rule file", STDIN_BYTES_MAX >> 10);
            }
            self.new.put(name, name, text);
            return Ok(name.to_owned());
        }
        let own = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.map_or(own, str::to_owned);
        let mut alone = Texts::default();
        alone.lay(path)?;
        let text = alone.names().next().and_then(|laid| alone.get(laid)).unwrap_or_default().to_owned();
        self.new.put(&name, &path.display().to_string(), text);
        Ok(name)
    }

    /// Takes a file away.
    pub fn without(&mut self, name: &str) -> Result<()> {
        if self.new.take(name) {
            return Ok(());
        }
        let there: Vec<&str> = self.old.names().collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        Err(Mistyped(format!("the home has no rule file `{name}`; it has: {there}")).into())
    }

    /// The policy that the draft would be, with what its files hold. All mistakes are printed.
    ///
    /// # Errors
    /// The last mistake, where there are some.
    pub fn read(&self, printer: &Printer) -> Result<(Policy, Parsed)> {
        let mut mistakes: Vec<RuleFileError> = self.new.mistakes();
        let last = mistakes.pop();
        for mistake in mistakes {
            printer.error(&mistake.into());
        }
        match last {
            Some(mistake) => Err(mistake.into()),
            None => Ok(compose::rules_of(&self.new)?),
        }
    }

    /// The policy of a session that would begin with the draft, with all that has a say in it. What is wrong
    /// with it is told, and how many of its examples it breaks.
    ///
    /// # Errors
    /// Those of [`Draft::read`]; or the configuration has one.
    pub fn tried(&self, home: &Home, printer: &Printer) -> Result<(Policy, usize)> {
        let (new, parsed) = self.read(printer)?;
        let mut broken = 0;
        for mistake in parsed.broken(&new) {
            broken += 1;
            printer.error(&mistake.into());
        }
        self.tell(printer);
        for warning in &parsed.warnings {
            match printer.is_json() {
                true => printer.json(&json!({ "warning": warning.to_string() })),
                false => printer.line(printer.paint(Style::Yellow, &format!("warning: {warning}"))),
            }
        }
        Ok((Extensions::read(&Config::load(home)?).join(new), broken))
    }

    /// Says what changes on the way from the home's files to the draft's.
    pub(crate) fn tell(&self, printer: &Printer) {
        let told = |mark: &str, name: &str, how: &str| {
            if printer.is_json() {
                printer.json(&json!({ "file": name, "how": how }));
            } else {
                printer.line(format!(
                    "{mark} {} {}",
                    printer.paint(Style::Bold, name),
                    printer.paint(Style::Dim, how)
                ));
            }
        };
        for name in self.new.names() {
            match self.old.get(name) {
                None => told("+", name, "added"),
                Some(old) if self.new.get(name) != Some(old) => told("±", name, "replaced"),
                Some(_) => {}
            }
        }
        for name in self.old.names().filter(|name| self.new.get(name).is_none()) {
            told("-", name, "taken away");
        }
        self.remark(printer);
    }

    /// Says what is easily overlooked.
    pub fn remark(&self, printer: &Printer) {
        if let Some(remark) = self.about_default() {
            printer.warn(remark);
        }
    }

    /// Whether nothing changes.
    pub fn is_same(&self) -> bool {
        self.old.digest() == self.new.digest()
    }

    /// The default rules come and go with the home's own files, which is easily overlooked.
    fn about_default(&self) -> Option<&'static str> {
        let has = |texts: &Texts| texts.names().next().is_some();
        match (has(&self.old), has(&self.new)) {
            (false, true) if self.new.get(DEFAULT) != Some(DEFAULT_RULES) => Some(
                "this home has no rule files yet, so the default rules are in force; with one of your own they are not \
                 (`bailey init` writes them into default.toml, to be kept beside yours)",
            ),
            (true, false) => Some("without any rule file the default rules are in force"),
            _ => None,
        }
    }
}
