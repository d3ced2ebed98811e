//! Bailey's decisions beside those of the `cedar-policy` crate, on what both can say: who asks, what kind of
//! action, in which folder; permits and prohibitions. They must agree on random rules, and both are timed in
//! one run.

use bailey_policy::{Answer, Condition, Facts, Glob, Places, Policy, Rule, Tier, Verdict};
use bailey_protocol::{
    Action, Blob, Cost, Effect, EffectId, FileChange, Kind, Labels, Role, Sealed, SessionId, Timestamp,
};
use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request, RestrictedExpression,
};
use std::time::Instant;

const SETS: usize = 2_000;
const REQUESTS: usize = 10;
const ROUNDS: usize = 200;
const KINDS: [Kind; 4] = [Kind::Read, Kind::Stat, Kind::List, Kind::Change];
const ROLES: [Role; 3] = [Role::Owner, Role::Agent, Role::Guest];

/// One rule, before it is spelled for either.
struct Said {
    deny: bool,
    role: Option<Role>,
    kinds: Vec<Kind>,
    folder: String,
}

/// Who asks for what.
struct Asked {
    role: Role,
    kind: Kind,
    path: String,
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn folder(&mut self, folders: usize) -> String {
        let name = format!("/srv/m{}", self.below(folders));
        if self.below(3) == 0 { format!("{name}/sub{}", self.below(2)) } else { name }
    }

    fn rule(&mut self, folders: usize) -> Said {
        Said {
            deny: self.below(3) == 0,
            role: (self.below(2) == 0).then(|| ROLES[self.below(3)]),
            kinds: (0..=self.below(2)).map(|_| KINDS[self.below(4)]).collect(),
            folder: self.folder(folders),
        }
    }

    fn asked(&mut self, folders: usize) -> Asked {
        let path = format!("{}/sub{}/file.rs", self.folder(folders), self.below(2));
        Asked { role: ROLES[self.below(3)], kind: KINDS[self.below(4)], path }
    }
}

fn ours(rules: &[Said]) -> Policy {
    let rule = |(number, said): (usize, &Said)| Rule {
        name: format!("r{number}"),
        tier: Tier::User,
        priority: 0,
        answer: if said.deny { Answer::Deny } else { Answer::Allow },
        matches: Condition {
            action: Some(said.kinds.clone()),
            role: said.role.map(|role| vec![role]),
            path: Some(vec![Glob::new(&format!("{}/**", said.folder)).expect("a glob")]),
            ..Condition::default()
        },
        except: Vec::new(),
        text: String::from("as it says"),
    };
    Policy::new(Vec::new(), rules.iter().enumerate().map(rule).collect())
}

fn theirs(rules: &[Said]) -> PolicySet {
    let policy = |said: &Said| {
        let effect = if said.deny { "forbid" } else { "permit" };
        let principal = said
            .role
            .map_or("principal".to_string(), |role| format!("principal == Role::\"{}\"", role.name()));
        let kinds: Vec<_> = said.kinds.iter().map(|kind| format!("Action::\"{}\"", kind.name())).collect();
        let (kinds, folder) = (kinds.join(", "), &said.folder);
        format!(
            "{effect}({principal}, action in [{kinds}], resource) when {{ context.path like \"{folder}/*\" }};"
        )
    };
    rules.iter().map(policy).collect::<Vec<_>>().join("\n").parse().expect("policies")
}

fn sealed(asked: &Asked) -> Sealed {
    let path = asked.path.as_str().into();
    let action = match asked.kind {
        Kind::Read => Action::Read { path },
        Kind::Stat => Action::Stat { path },
        Kind::List => Action::List { path },
        _ => Action::Change { files: vec![FileChange { path, base: None, new: Some(Blob(Vec::new())) }] },
    };
    Sealed::new(Effect {
        id: EffectId::new(0, [0; 10]),
        session: SessionId::new(0, [0; 10]),
        parent: None,
        call: None,
        role: asked.role,
        action,
        labels: Labels::default(),
        cost: Cost::default(),
    })
    .expect("an effect")
}

fn request(asked: &Asked) -> Request {
    let uid = |text: String| text.parse::<EntityUid>().expect("a name");
    let path = RestrictedExpression::new_string(asked.path.clone());
    Request::new(
        uid(format!("Role::\"{}\"", asked.role.name())),
        uid(format!("Action::\"{}\"", asked.kind.name())),
        uid("File::\"it\"".into()),
        Context::from_pairs([("path".into(), path)]).expect("a context"),
        None,
    )
    .expect("a request")
}

fn places() -> Places {
    Places { workspace: "/home/ann/proj".into(), user_home: "/home/ann".into(), ..Places::default() }
}

fn we_allow(policy: &Policy, effect: &Sealed, places: &Places) -> bool {
    let decided = policy.decide(&Facts::new(effect, Timestamp::UNIX_EPOCH, places));
    matches!(decided.verdict, Verdict::Allow(_))
}

fn they_allow(authorizer: &Authorizer, policies: &PolicySet, request: &Request) -> bool {
    authorizer.is_authorized(request, policies, &Entities::empty()).decision() == Decision::Allow
}

fn agree() {
    let (mut draw, authorizer, places) = (Draw(7), Authorizer::new(), places());
    let mut allowed = 0_usize;
    for _ in 0..SETS {
        let rules: Vec<Said> = (0..draw.below(12)).map(|_| draw.rule(3)).collect();
        let (policy, policies) = (ours(&rules), theirs(&rules));
        for _ in 0..REQUESTS {
            let asked = draw.asked(3);
            let we = we_allow(&policy, &sealed(&asked), &places);
            let they = they_allow(&authorizer, &policies, &request(&asked));
            assert_eq!(we, they, "{:?} {} {}", asked.role, asked.kind.name(), asked.path);
            allowed += usize::from(we);
        }
    }
    println!("{} decisions under {SETS} random rule sets: all agree, {allowed} allowed", SETS * REQUESTS);
    assert!(allowed > SETS, "enough of both");
}

/// The middle of so many timings, in microseconds for one decision. Both are taken in turn.
fn time(count: usize) -> (f64, f64) {
    let mut draw = Draw(11);
    let rules: Vec<Said> = (0..count).map(|_| draw.rule(count)).collect();
    let (policy, policies) = (ours(&rules), theirs(&rules));
    let asked: Vec<Asked> = (0..REQUESTS).map(|_| draw.asked(count)).collect();
    let effects: Vec<Sealed> = asked.iter().map(sealed).collect();
    let requests: Vec<Request> = asked.iter().map(request).collect();
    let (authorizer, places) = (Authorizer::new(), places());
    let (mut we, mut they) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for effect in &effects {
            let _ = std::hint::black_box(we_allow(&policy, effect, &places));
        }
        we.push(start.elapsed());
        let start = Instant::now();
        for request in &requests {
            let _ = std::hint::black_box(they_allow(&authorizer, &policies, request));
        }
        they.push(start.elapsed());
    }
    let middle = |mut times: Vec<std::time::Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e6 / REQUESTS as f64
    };
    (middle(we), middle(they))
}

fn main() {
    agree();
    println!("{:>6} {:>14} {:>14}", "rules", "bailey", "cedar-policy");
    for count in [25, 200, 1000] {
        let (we, they) = time(count);
        println!("{count:>6} {we:>11.1} µs {they:>11.1} µs");
    }
}
