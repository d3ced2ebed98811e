//! Whether the rules allow everything that a scope covers: what is asked before a token is minted, because
//! nobody asks the file rules again while it holds.
//!
//! It is the same three-valued fit as in a decision, of a condition to a whole set of actions instead of one:
//! an allow must fit all of them, a review and a deny count when they may fit any. So a scope is refused when
//! in doubt.

use crate::{
    Caveat, Glob, HostGlob, Places, Policy,
    command::CommandPrefix,
    condition::Condition,
    fit::Fit,
    host::Method,
    place::Located,
    programs::Programs,
    rule::{Answer, Rule},
    tally::Tally,
    tool::ToolGlob,
    url::UrlGlob,
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::Kind;

/// Most sets of actions that one caveat may come to: kinds times paths, hosts, commands and tools.
const SETS_MAX: usize = 1024;

/// Why a caveat's scope is not minted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotWholly {
    /// It has no scope, or one without kinds of action.
    #[error("a scope names the kinds of action that it is for")]
    Boundless,
    /// A glob leaves open what lies where.
    #[error(
        "`{0}` is no file and no whole folder: a token is minted for paths such as `src/lib.rs` or `src/**`"
    )]
    Pattern(String),
    /// It comes to too many sets of actions.
    #[error("the scope has too many parts: {SETS_MAX} at most")]
    TooMuch,
    /// Some of it is not allowed.
    #[error("the rules do not allow all of `{what}`: {why}")]
    Rules {
        /// The part of the scope.
        what: String,
        /// What the rules say, for people.
        why: String,
    },
}

/// Actions of one kind that a condition covers, with one value of each of its lists.
struct Set<'a> {
    kind: Kind,
    scope: &'a Condition,
    path: Option<Located<'a>>,
    host: Option<&'a HostGlob>,
    command: Option<&'a CommandPrefix>,
    tool: Option<&'a ToolGlob>,
    programs: Programs,
}

impl Policy {
    /// Whether the rules allow everything that a caveat covers, without a question and without an extension's
    /// word. Binding rules that deny or ask are left out: they are heard at each use.
    ///
    /// # Errors
    /// The first part that they do not allow, or that is not certain.
    pub fn vouch(&self, caveat: &Caveat, places: &Places) -> Result<(), NotWholly> {
        let conditions = caveat.scope.as_deref().filter(|scope| !scope.is_empty());
        conditions.ok_or(NotWholly::Boundless)?.iter().try_for_each(|scope| self.vouch_one(scope, places))
    }

    fn vouch_one(&self, scope: &Condition, places: &Places) -> Result<(), NotWholly> {
        let kinds = scope.action.as_deref().filter(|kinds| !kinds.is_empty());
        let kinds = kinds.ok_or(NotWholly::Boundless)?;
        let paths: Vec<_> = values(&scope.path).map(|glob| whole(glob, places)).collect::<Result<_, _>>()?;
        let (hosts, commands) = (values(&scope.host).count(), values(&scope.command).count());
        let lists = [kinds.len(), paths.len(), hosts, commands, values(&scope.tool).count()];
        if lists.into_iter().fold(1, usize::saturating_mul) > SETS_MAX {
            return Err(NotWholly::TooMuch);
        }
        let programs = self.programs();
        for kind in kinds.iter().copied() {
            // What is searched or compared is all that lies beneath.
            let deep = matches!(kind, Kind::Search | Kind::Diff);
            for path in paths.iter().map(Option::as_ref) {
                for host in values(&scope.host) {
                    for command in values(&scope.command) {
                        for tool in values(&scope.tool) {
                            let path = path.map(|(path, folder)| Located::new(path, *folder || deep, places));
                            self.vouch_for(&Set { kind, scope, path, host, command, tool, programs })?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn vouch_for(&self, set: &Set<'_>) -> Result<(), NotWholly> {
        let refused = |why: String| NotWholly::Rules { what: set.shown(), why };
        if let Some(extension) = self.asked(set.kind).next() {
            return Err(refused(format!("the extension `{}` judges each of them", extension.name)));
        }
        let heard = |rule: &&Rule| !rule.tier.binds() || rule.answer == Answer::Allow;
        let mut tally = Tally::new(1);
        let mut against = Vec::new();
        for rule in self.rules().filter(heard).filter(|rule| set.hears(rule)) {
            tally.count(rule);
            if matches!(rule.answer, Answer::Review | Answer::Deny) {
                against.push(format!("{} ({} rule `{}`)", rule.text, rule.tier.name(), rule.name));
            }
        }
        match (tally.denied, tally.strictest()) {
            (false, Answer::Allow) => Ok(()),
            _ if against.is_empty() => Err(refused("no rule allows it".to_string())),
            _ => Err(refused(against.join("; "))),
        }
    }
}

/// Each value of a list, or none once where it is not given.
fn values<T>(list: &Option<Vec<T>>) -> impl Iterator<Item = Option<&T>> {
    let absent = list.is_none().then_some(None);
    list.iter().flatten().map(Some).chain(absent)
}

fn whole(glob: Option<&Glob>, places: &Places) -> Result<Option<(String, bool)>, NotWholly> {
    let Some(glob) = glob else { return Ok(None) };
    glob.plain(places).map(Some).ok_or_else(|| NotWholly::Pattern(glob.as_str().to_string()))
}

impl Set<'_> {
    /// Whether a rule speaks about all of these actions, or where that is the safer answer, about any.
    fn hears(&self, rule: &Rule) -> bool {
        let (enough, exempt) = match rule.answer {
            Answer::Allow => (Fit::Yes, Fit::Maybe),
            Answer::Pass | Answer::Review | Answer::Deny => (Fit::Maybe, Fit::Yes),
        };
        rule.concerns(self.kind)
            && self.fit(&rule.matches) >= enough
            && !rule.except.iter().any(|it| self.fit(it) >= exempt)
    }

    /// How a condition fits all of these actions.
    fn fit(&self, own: &Condition) -> Fit {
        let Self { kind, scope, .. } = self;
        if own.action.as_ref().is_some_and(|kinds| !kinds.contains(kind)) {
            return Fit::No;
        }
        let has_path = !matches!(kind, Kind::Model | Kind::Http | Kind::Tool);
        let is_tool = *kind == Kind::Tool;
        let is_sent = matches!(kind, Kind::Model | Kind::Http);
        let has_size = is_sent || is_tool || matches!(kind, Kind::Change | Kind::Adapt);
        let path = self.path.as_ref();
        let network = match kind {
            Kind::Exec => scope.network,
            Kind::Tool => None,
            _ => Some(is_sent),
        };
        list(&own.path, path, has_path, Glob::fit)
            .min(list(&own.host, self.host, is_sent, HostGlob::fit_all))
            .min(if is_sent { methods(&own.method, &scope.method) } else { absent(&own.method) })
            .min(if is_sent { paths(&own.url_path, &scope.url_path) } else { absent(&own.url_path) })
            .min(list(&own.command, self.command, *kind == Kind::Exec, |own, all| {
                own.fit_all(all, self.programs)
            }))
            .min(list(&own.tool, self.tool, is_tool, ToolGlob::fit_all))
            .min(if is_tool { set(&own.effect, &scope.effect) } else { absent(&own.effect) })
            .min(set(&own.role, &scope.role))
            .min(set(&own.trust, &scope.trust))
            .min(set(&own.mode, &scope.mode))
            .min(set(&own.state, &scope.state))
            .min(if *kind == Kind::Merge {
                set(&own.direction, &scope.direction)
            } else {
                absent(&own.direction)
            })
            // Whoever has one tag may have others, too.
            .min(set(&own.tag, &scope.tag).max(if own.tag.is_some() { Fit::Maybe } else { Fit::Yes }))
            .min(same(own.network, network))
            .min(if has_path { same(own.revealed, scope.revealed) } else { absent(&own.revealed) })
            // No scope speaks of them, and any merge may bring some.
            .min(if *kind == Kind::Merge {
                own.marks.map_or(Fit::Yes, |_| Fit::Maybe)
            } else {
                absent(&own.marks)
            })
            .min(limit(own.max_size, scope.max_size, has_size))
            .min(limit(own.max_wall, scope.max_wall, *kind == Kind::Exec))
            .min(limit(own.max_memory, scope.max_memory, *kind == Kind::Exec))
    }

    fn shown(&self) -> String {
        let mut text = self.kind.name().to_string();
        let of = [
            self.path
                .as_ref()
                .map(|path| if path.tree { format!("{}/**", path.shown()) } else { path.shown() }),
            self.host.map(ToString::to_string),
            self.command.map(ToString::to_string),
            self.tool.map(ToString::to_string),
        ];
        for part in of.into_iter().flatten() {
            text.push(' ');
            text.push_str(&part);
        }
        text
    }
}

/// `has` says whether such actions have the value at all; one that is not given can then be any.
fn list<T, V>(own: &Option<Vec<T>>, given: Option<&V>, has: bool, fit: impl Fn(&T, &V) -> Fit) -> Fit {
    match (own, given) {
        (None, _) => Fit::Yes,
        (Some(own), _) if own.is_empty() || !has => Fit::No,
        (Some(_), None) => Fit::Maybe,
        (Some(own), Some(given)) => own.iter().map(|own| fit(own, given)).max().unwrap_or(Fit::No),
    }
}

/// What has one of the given values.
fn set<T: PartialEq>(own: &Option<Vec<T>>, given: &Option<Vec<T>>) -> Fit {
    let Some(own) = own else { return Fit::Yes };
    let Some(given) = given else { return if own.is_empty() { Fit::No } else { Fit::Maybe } };
    let inside = given.iter().filter(|value| own.contains(value)).count();
    match inside {
        0 => Fit::No,
        all if all == given.len() => Fit::Yes,
        _ => Fit::Maybe,
    }
}

/// What has one of the given methods.
fn methods(own: &Option<Vec<Method>>, given: &Option<Vec<Method>>) -> Fit {
    let (Some(own), Some(given)) = (own, given) else { return set(own, given) };
    let fit = |given: &Method| own.iter().map(|own| own.fit(given.as_str())).max().unwrap_or(Fit::No);
    let (least, most) = (given.iter().map(fit).min(), given.iter().map(fit).max());
    match (least, most) {
        (Some(least), Some(most)) if least == most => least,
        (None, _) | (_, None) => Fit::No,
        _ => Fit::Maybe,
    }
}

/// What has one of the given paths.
fn paths(own: &Option<Vec<UrlGlob>>, given: &Option<Vec<UrlGlob>>) -> Fit {
    let Some(own) = own else { return Fit::Yes };
    let best = |given: &UrlGlob| own.iter().map(|own| own.fit_all(given)).max().unwrap_or(Fit::No);
    match given {
        _ if own.is_empty() => Fit::No,
        None => best(&UrlGlob::everything()),
        Some(given) => given.iter().map(best).min().unwrap_or(Fit::No),
    }
}

fn same(own: Option<bool>, given: Option<bool>) -> Fit {
    match (own, given) {
        (None, _) => Fit::Yes,
        (Some(_), None) => Fit::Maybe,
        (Some(own), Some(given)) => (own == given).into(),
    }
}

fn limit(own: Option<u64>, given: Option<u64>, has: bool) -> Fit {
    match (own, given) {
        (None, _) => Fit::Yes,
        (Some(_), _) if !has => Fit::No,
        (Some(own), Some(given)) if given <= own => Fit::Yes,
        _ => Fit::Maybe,
    }
}

/// A value that such actions do not have.
fn absent<T>(own: &Option<T>) -> Fit {
    own.is_none().into()
}
