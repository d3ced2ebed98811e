//! Programs that can run others: what the table makes of them, beside a table without a line.

use crate::support::*;
use bailey_policy::{
    Answer::{self, Allow, Deny},
    Facts, NoPattern, Pattern, Policy, Programs, Rule,
};
use bailey_protocol::{Action, Blob, Command, Role::Agent, Timestamp};

fn line(text: &str) -> Command {
    let words: Vec<&str> = text.split('~').collect();
    match exec(&words) {
        Action::Exec(command) => command,
        _ => panic!("a command"),
    }
}

fn words(text: &str) -> Command {
    line(&text.replace(' ', "~"))
}

fn judged(rules: Vec<Rule>, programs: Programs, command: &Command) -> Answer {
    let policy = Policy::new(vec![], rules).with_programs(programs);
    answer(&decide(&policy, Agent, Action::Exec(command.clone())))
}

/// A prefix that an owner may have allowed, and a command that begins like it and runs something else.
const TRICKS: &[(&str, &str)] = &[
    ("find", "find . -name x -exec rm {} +"),
    ("find", "find . -delete"),
    ("install", "install -s --strip-program=./x a b"),
    ("install", "install --strip-prog=./x a b"),
    ("printf", "printf -v a[$(x)] y"),
    ("test", "test -v a[$(x)]"),
    ("sqlite3", "sqlite3 a.db .sh"),
    ("git clone", "git clone -c core.hooksPath=x a b"),
    ("git clone", "git clone --conf=core.hooksPath=x a b"),
    ("git", "git merge-index x -a"),
    ("hg", "hg status -R x"),
    ("openssl", "openssl req -config x"),
    ("find .", "find . -okdir rm"),
    ("git", "git -c core.sshCommand=x fetch"),
    ("git", "git -ccore.fsmonitor=x status"),
    ("git", "git --config-env=core.pager=X log"),
    ("git", "git --exec-path=. status"),
    ("git", "git grep -Ox a"),
    ("git rebase", "git rebase -x make main"),
    ("git rebase", "git rebase --exe make main"),
    ("git fetch", "git fetch --upload-pack=x ."),
    ("git clone", "git clone ext::sh x"),
    ("git", "git submodule foreach rm"),
    ("git", "git config alias.x !rm"),
    ("git", "git bisect run make"),
    ("tar", "tar xf a.tar --to-command=sh"),
    ("tar", "tar cf a.tar b --checkpoint-act=exec=sh"),
    ("tar", "tar -cIsh -f a.tar b"),
    ("tar", "tar cIf sh a.tar b"),
    ("tar", "tar --use-comp=sh -cf a b"),
    ("sort", "sort --compress-prog=sh a"),
    ("split", "split --filter=sh a"),
    ("rsync", "rsync -e sh a b"),
    ("rsync", "rsync -ave sh a b"),
    ("rsync", "rsync --rsync-path sh a b"),
    ("ssh", "ssh -oProxyCommand=sh host"),
    ("ssh", "ssh -vo ProxyCommand=sh host"),
    ("rg", "rg --pre sh x"),
    ("fd", "fd -x rm"),
    ("awk", "awk BEGIN{system(\"sh\")}"),
    ("awk", "awk {print|\"sh\"} a"),
    ("sed", "sed s/a/sh/e a"),
    ("sed", "sed 1e a"),
    ("sed", "sed -n s/a/b/w/x a"),
    ("sed", "sed -f script a"),
    ("vim", "vim -c !sh a"),
    ("vim", "vim +!sh a"),
    ("less", "less +!sh a"),
    ("man", "man -P sh ls"),
    ("zip", "zip -T --unzip-command sh a b"),
    ("python3", "python3 -c x"),
    ("python3", "python3 -Ic x"),
    ("python3", "python3.12 -c x"),
    ("python3", "python3 -m http.server"),
    ("python3", "python3"),
    ("python3", "python3 -"),
    ("node", "node -e x"),
    ("node", "node --eva=x"),
    ("node", "node"),
    ("node a.js", "node a.js --require=./b.js"),
    ("perl", "perl -ne x a"),
    ("ruby", "ruby -rx a.rb"),
    ("make", "make --eval=x"),
    ("make", "make SHELL=./x all"),
    ("cargo", "cargo --config build.rustc=\"x\" build"),
    ("cargo test", "cargo test --confi=x"),
    ("go test", "go test -exec=sh"),
    ("go test", "go test --exec sh"),
    ("npm", "npm exec x"),
    ("npm run", "npm run x --script-shell=./x"),
    ("psql", "psql -c \\!sh"),
    ("sqlite3", "sqlite3 a .shell"),
    ("wget", "wget --use-askpass=sh x"),
    // The value of an option before it makes no word an operand.
    ("git", "git -C . --exec-path=./x status"),
    ("git", "git -C . -c core.fsmonitor=./x status"),
    ("git", "git -C . bisect run ./x"),
    ("git", "git -C . submodule foreach x"),
    ("git", "git --git-dir .git submodule foreach x"),
    ("git", "git --git-dir=.git submodule foreach x"),
    ("git", "git --work-t . --no-pager config alias.x !rm"),
    ("git", "git -C --no-pager bisect run ./x"),
    ("git", "git -C . -C .. difftool -x rm"),
    ("git", "git --of-a-later-version x bisect run ./x"),
    ("git", "git --of-a-later-version bisect run ./x"),
    ("git", "git --help log"),
    ("hg", "hg --color never extdiff"),
    ("hg", "hg --pag never extdiff"),
    ("deno", "deno -L info eval x"),
    ("deno", "deno run -"),
    ("cargo", "cargo --color always install x"),
    ("cargo", "cargo -qC sub install x"),
    ("cargo", "cargo +nightly install x"),
    ("go", "go -C sub run x"),
    ("npm", "npm --loglevel silent exec x"),
    ("pnpm", "pnpm -F sub dlx x"),
    ("yarn", "yarn --cwd sub dlx x"),
    ("bun", "bun --cwd sub x y"),
    ("pip", "pip --log a config edit"),
    ("uv", "uv --directory sub run x"),
    ("poetry", "poetry -C sub run x"),
    ("nix", "nix --option post-build-hook ./x build"),
    ("nix", "nix --log-format raw run x"),
    ("python3", "python3 -W ignore"),
    ("python3", "python3 -uX dev -"),
    ("node", "node --title x"),
    ("node", "node -C x -"),
    ("perl", "perl -w"),
    ("ruby", "ruby -C sub -"),
    ("php", "php -c php.ini"),
    ("lua", "lua -W -"),
    ("Rscript", "Rscript --vanilla -"),
    ("julia", "julia -t 4"),
    ("m4", "m4 -P"),
    ("ed", "ed a"),
    ("sed", "sed -l 5 1e a"),
    ("sed", "sed --line-le 5 1e a"),
    ("sed", "sed -nl 5 s/a/sh/e a"),
];

/// The same programs at what they are there for.
const HONEST: &[(&str, &str)] = &[
    ("find", "find . -name *.rs"),
    ("git", "git status -s"),
    ("git log", "git log --oneline -5"),
    ("git commit", "git commit -m x"),
    ("tar", "tar xzf a.tar.gz -C b"),
    ("sort", "sort -u a"),
    ("rsync", "rsync -av a b"),
    ("awk", "awk {print$1} a"),
    ("sed", "sed -n 1,5p a"),
    ("sed", "sed s/a/b/g a"),
    ("python3", "python3 tests/run.py x"),
    ("python3", "python3 --version"),
    ("node", "node build.js"),
    ("make", "make -j4 all"),
    ("cargo test", "cargo test --all"),
    ("npm run", "npm run build"),
    ("python3 -c", "python3 -c x"),
    ("git -c", "git -c a.b=c status"),
    ("git", "git -C config status"),
    ("git", "git --no-pager -C sub log -p"),
    ("tar", "tar -x -f a.tar -C Images"),
    ("cargo", "cargo +nightly -vv test -p install"),
    ("go", "go -C run build"),
    ("npm", "npm --silent run exec"),
    ("pip", "pip -q --timeout 5 install run"),
    ("python3", "python3 -W ignore -Bu a.py -"),
    ("python3", "python3 -Xdev a.py"),
    ("node", "node --enable-source-maps -C x build.js"),
    ("deno", "deno -q run a.ts"),
    ("perl", "perl -w a.pl"),
    ("ruby", "ruby -W0 -C sub a.rb"),
    ("php", "php -f a.php"),
    ("awk", "awk -F , {print$1}"),
    ("sed", "sed -i -E s/a/b/g a"),
    ("sed", "sed -nl5 1,5p a"),
    ("unknown", "unknown -c x"),
];

#[test]
fn an_allow_for_a_program_does_not_cover_what_its_options_run() {
    for (prefix, text) in TRICKS {
        let command = words(text);
        // `python3` is allowed where the program is `python3.12` only because some file has another name.
        let named = command.argv[0] == prefix.split(' ').next().unwrap();
        let allow = vec![rule("a", Allow).on(crate::support::command(&[prefix]))];
        assert_eq!(judged(allow.clone(), Programs::KNOWN, &command), Deny, "{text}");
        assert_eq!(judged(allow, Programs::NONE, &command) == Allow, named, "control: {text}");
        // What runs instead may be what is denied.
        let deny = vec![rule("a", Allow), rule("d", Deny).on(crate::support::command(&["rm"]))];
        assert_eq!(judged(deny.clone(), Programs::KNOWN, &command), Deny, "{text}");
        assert_eq!(judged(deny, Programs::NONE, &command), Allow, "control: {text}");
    }
    for (prefix, text) in HONEST {
        let allow = vec![rule("a", Allow).on(crate::support::command(&[prefix]))];
        assert_eq!(judged(allow, Programs::KNOWN, &words(text)), Allow, "{text}");
    }
}

/// What an explanation says of the one rule, an allow for some prefixes.
fn why(prefixes: &[&str], command: &Command) -> Option<String> {
    let policy = Policy::new(vec![], vec![rule("a", Allow).on(crate::support::command(prefixes))]);
    let sealed = sealed(Agent, Action::Exec(command.clone()));
    let places = places();
    let considered = policy.consider(&Facts::new(&sealed, Timestamp::UNIX_EPOCH, &places));
    considered.into_iter().find(|it| it.rule.name == "a").unwrap().why
}

#[test]
fn an_explanation_says_why_an_allow_does_not_cover_a_command_and_what_would() {
    let mut followed = 0;
    for (prefix, text) in TRICKS {
        let command = words(text);
        if command.argv[0] != prefix.split(' ').next().unwrap() {
            continue;
        }
        let why = why(&[prefix], &command).unwrap_or_else(|| panic!("nothing is said of `{text}`"));
        // What it says to write does what it says.
        let Some((_, advised)) = why.split_once("has to name it, `") else { continue };
        let advised = advised.trim_end_matches('`');
        let allow = vec![rule("a", Allow).on(crate::support::command(&[advised]))];
        assert_eq!(judged(allow, Programs::KNOWN, &command), Allow, "{text}: {why}");
        followed += 1;
    }
    assert!(followed > 50, "{followed}");
    let cases: &[(&str, &str, &str)] = &[
        ("python3", "python3~-m~venv~x", "`-m` makes `python3` run something else"),
        ("python3", "python3", "reads from its standard input"),
        ("pip", ".venv/bin/pip~install~x", "name it by its path, `.venv/bin/pip`"),
        ("bash", "bash~x.sh", "what `bash` runs is among its arguments"),
        ("ls", "sh~-c~ls $X", "more than plain words"),
        ("ls", "sh~-c~env ls", "a part of its shell line"),
        ("git push", "git~-C~sub~push", "no option before or between its words"),
    ];
    for (prefix, text, part) in cases {
        let why = why(&["make", prefix], &line(text));
        assert!(why.as_ref().is_some_and(|why| why.contains(part)), "{text}: {why:?}");
    }
    let mut steered = words("git status");
    steered.env.insert("GIT_PAGER".into(), "x".into());
    assert!(why(&["git"], &steered).unwrap().contains("`GIT_PAGER`"));
    for (prefixes, text) in
        [(["make"], "python3 -m venv x"), (["git push"], "git status"), (["ls"], "env make")]
    {
        assert_eq!(why(&prefixes, &words(text)), None, "another program: {text}");
    }
    assert_eq!(why(&["python3 -m"], &words("python3 -m venv x")), None, "control: it fits");
}

#[test]
fn variables_that_steer_programs_hide_them() {
    let with = |name: &str, programs| {
        let mut command = words("git status");
        command.env.insert(name.into(), "x".into());
        judged(vec![rule("a", Allow).on(crate::support::command(&["git"]))], programs, &command)
    };
    for name in
        ["GIT_PAGER", "GIT_EXTERNAL_DIFF", "EDITOR", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT", "MAKEFLAGS"]
    {
        assert_eq!((with(name, Programs::KNOWN), with(name, Programs::NONE)), (Deny, Allow), "{name}");
    }
    for name in ["RUST_LOG", "LC_ALL", "LANG", "NO_COLOR", "CI", "CARGO_TERM_COLOR", "TZ"] {
        assert_eq!(with(name, Programs::KNOWN), Allow, "control: {name}");
    }
}

#[test]
fn a_shell_that_reads_a_file_of_the_home_hides_what_it_runs() {
    let allow = || vec![rule("a", Allow).on(crate::support::command(&["ls"]))];
    assert_eq!(judged(allow(), Programs::KNOWN, &line("bash~-c~ls")), Allow, "control");
    assert_eq!(judged(allow(), Programs::KNOWN, &line("zsh~-c~ls")), Deny);
}

/// A program that is allowed, a command that names it, and a variable by which something else runs.
const STEERED: &[(&str, &str, &str, &str)] = &[
    ("ls", "bash~-c~ls", "BASH_FUNC_ls%%", "() { id; }"),
    ("tar", "tar~-cf~a~b", "TAR_OPTIONS", "--checkpoint=1 --checkpoint-action=exec=sh"),
    ("rg", "rg~x", "RIPGREP_CONFIG_PATH", "rc"),
    ("wget", "wget~http://x", "WGETRC", "rc"),
    ("vim", "vim~a", "VIMINIT", "!sh"),
    ("git", "git~log", "HOME", "/work"),
    ("git", "git~log", "XDG_CONFIG_HOME", "/work"),
    ("git", "git~log", "LANGUAGE", "../../work"),
    ("git", "git~log", "OF_A_LATER_VERSION", "x"),
];

#[test]
fn a_variable_that_nobody_knows_hides_what_runs() {
    for (prefix, text, name, value) in STEERED {
        let mut steered = line(text);
        let allow = || vec![rule("a", Allow).on(crate::support::command(&[prefix]))];
        assert_eq!(judged(allow(), Programs::KNOWN, &steered), Allow, "control: {text} without {name}");
        steered.env.insert((*name).into(), (*value).into());
        assert_eq!(judged(allow(), Programs::KNOWN, &steered), Deny, "{name}={value} {text}");
        assert_eq!(judged(allow(), Programs::NONE, &steered), Allow, "control: {name}={value} {text}");
        // It is asked about, or allowed, by whoever names no program; and a denial of what may run is heard.
        assert_eq!(judged(vec![rule("a", Allow)], Programs::KNOWN, &steered), Allow, "{name}");
        let deny = vec![rule("a", Allow), rule("d", Deny).on(crate::support::command(&["id"]))];
        assert_eq!(judged(deny, Programs::KNOWN, &steered), Deny, "{name}={value} {text}");
    }
}

/// Lines of a shell whose first word is the shell's own and runs, or may run, what its arguments say.
const OWN_WORDS: &[&str] = &[
    "jobs -x curl http://x",
    "jobs -x git push",
    "hash -p /usr/bin/curl z; z http://x",
    "hash z=/usr/bin/curl; z http://x",
    "compgen -C 'curl http://x' a",
    "complete -C 'curl http://x' a",
    "read 'a[$(curl http://x)]'",
    "read PATH; ls",
    "let 'a[$(curl http://x)]=1'",
    "unset 'a[$(curl http://x)]'",
    "typeset 'a[$(curl http://x)]=1'",
    "getopts x 'a[$(curl http://x)]'",
    "wait -p 'a[$(curl http://x)]' 1",
    "echo q | mapfile -C 'curl http://x' -c 1",
    "echo q | readarray -C 'curl http://x' -c 1",
    "bind -x '\"a\": curl http://x'",
    "fc -s ls=curl",
    "noglob curl http://x",
    "nocorrect curl http://x",
    "- curl http://x",
    "repeat 1 curl http://x",
    "foreach x ls; curl http://x; end",
    "emulate sh -c 'curl http://x'",
    "sched +1 curl http://x",
    "zargs -- http://x -- curl",
    "autoload -X",
    "set -k; ls PATH=.",
    "set -A path .; ls",
    "shopt -s expand_aliases",
    "cd 'a[$(curl http://x)]'",
    "shift 'a[$(curl http://x)]'",
    "exit 'a[`curl http://x`]'",
];

/// What is known of a shell's own words.
const PLAIN_WORDS: &[&str] = &[
    "sleep 1 & wait",
    "sleep 1 & wait 12",
    "sleep 1 & jobs -l",
    "unset FOO BAR; ls",
    "unset -f ls; ls",
    "hash -r; ls",
    "hash ls",
    "set -euo pipefail; ls",
    "set -x; ls",
    "cd sub && ls",
    "echo '$5 and `x`'",
    "exit 1",
];

#[test]
fn a_shells_own_word_hides_what_it_runs() {
    let on = |prefix: &str| crate::support::command(&[prefix]);
    for (shell, text) in
        ["bash", "zsh"].into_iter().flat_map(|shell| OWN_WORDS.iter().map(move |text| (shell, text)))
    {
        let command = line(&format!("{shell}~-c~{text}"));
        for (answer, prefix) in [(Deny, "curl"), (Answer::Review, "git push")] {
            let rules = vec![rule("a", Allow), rule("r", answer).on(on(prefix))];
            assert_eq!(judged(rules, Programs::KNOWN, &command), answer, "{shell}: {text}");
        }
        let first = text.split(' ').next().unwrap();
        let allow =
            vec![rule("a", Allow).on(crate::support::command(&[first, "echo", "ls", "z", "end", "curl"]))];
        assert_eq!(judged(allow, Programs::KNOWN, &command), Deny, "{shell}: {text}");
    }
    for text in PLAIN_WORDS {
        let rules = vec![rule("a", Allow), rule("d", Deny).on(on("curl"))];
        assert_eq!(
            judged(rules, Programs::KNOWN, &line(&format!("bash~-c~{text}"))),
            Allow,
            "control: {text}"
        );
    }
    // Without a shell they are programs like others.
    let rules = vec![rule("a", Allow), rule("d", Deny).on(on("curl"))];
    assert_eq!(judged(rules, Programs::KNOWN, &words("sched +1 curl")), Allow, "control");
}

#[test]
fn a_launcher_hides_what_it_runs() {
    for text in [
        "sg x curl",
        "runcon x curl http://x",
        "chronic curl http://x",
        "sshpass -p x curl http://x",
        "dumb-init curl http://x",
        "i386 curl http://x",
        "uname26 curl http://x",
        "cgexec -g x curl http://x",
        "coreutils --coreutils-prog=env curl http://x",
        "pipenv run curl http://x",
        "nix-shell --run x",
    ] {
        let rules = || vec![rule("a", Allow), rule("d", Deny).on(crate::support::command(&["curl"]))];
        assert_eq!(judged(rules(), Programs::KNOWN, &words(text)), Deny, "{text}");
        assert_eq!(judged(rules(), Programs::NONE, &words(text)), Allow, "control: {text}");
    }
}

/// A prefix that names an option by which something else runs, a command that it covers, and one with another
/// such option.
const ONE_OF_TWO: &[(&str, &str, &str)] = &[
    ("find . -delete", "find . -delete -print", "find . -delete -exec curl x {} +"),
    ("tar -I zstd", "tar -I zstd -xf a", "tar -I zstd -xf a --to-command=curl"),
    ("sort -o", "sort -o out x", "sort -o out --compress-program=./evil x"),
    ("rg -z", "rg -z x", "rg -z --pre ./evil x"),
    ("git -p log", "git -p log -3", "git -p log -c core.pager=evil"),
    ("git -c", "git -c a.b=c status", "git -c core.pager=evil status"),
    ("git submodule update", "git submodule update", "git submodule update --upload-pack=./evil"),
    ("sqlite3 a.db", "sqlite3 a.db select", "sqlite3 a.db .shell"),
    ("cargo install", "cargo install x", "cargo install --config=./evil x"),
];

#[test]
fn an_allow_that_names_one_option_covers_no_other() {
    for (prefix, covered, beyond) in ONE_OF_TWO {
        let allow = || vec![rule("a", Allow).on(crate::support::command(&[prefix]))];
        assert_eq!(judged(allow(), Programs::KNOWN, &words(covered)), Allow, "control: {covered}");
        assert_eq!(judged(allow(), Programs::KNOWN, &words(beyond)), Deny, "{beyond}");
        assert_eq!(judged(allow(), Programs::NONE, &words(beyond)), Allow, "control: {beyond}");
        // What would have to be named is told, and is enough.
        let why = why(&[prefix], &words(beyond)).unwrap();
        let advised = why.rsplit('`').nth(1).unwrap();
        let allow = vec![rule("a", Allow).on(crate::support::command(&[advised]))];
        assert_eq!(judged(allow, Programs::KNOWN, &words(beyond)), Allow, "{why}");
    }
    // An interpreter that may run any code runs no more by its further words: they are that code's.
    for (prefix, text) in
        [("python3 -c", "python3 -c x -m -c"), ("python3 -m pytest", "python3 -m pytest -c x")]
    {
        let allow = vec![rule("a", Allow).on(crate::support::command(&[prefix]))];
        assert_eq!(judged(allow, Programs::KNOWN, &words(text)), Allow, "{text}");
    }
}

/// A rule against some words of a program, and a command that says them with options, or their values, in
/// between.
const AGAINST: &[(&str, &str)] = &[
    ("git push", "git -C . push"),
    ("git push", "git --no-pager push"),
    ("git push", "git -C sub --git-dir .git --work-tree=. push origin"),
    ("git push", "/usr/bin/git -C . push"),
    ("git push", "git --of-a-later-version push"),
    ("git push", "git --of-a-later-version x push"),
    ("git push", "git --work-t . push"),
    ("git push", "git -C --no-pager push"),
    ("git push", "git --of-a-later-version -C push"),
    ("git push --force", "git push -q --force"),
    ("git remote add", "git --no-pager remote -v add x y"),
    ("cargo publish", "cargo +nightly -q publish"),
    ("cargo publish", "cargo --color always publish"),
    ("cargo test --doc", "cargo test --no-run --doc"),
    ("npm run deploy", "npm --loglevel silent run -s deploy"),
    ("terraform apply", "terraform -chdir=x apply"),
    ("deploy prod", "deploy -v prod"),
    ("deploy prod", "deploy --log x prod"),
    ("rm -rf", "rm -v -rf a"),
];

/// The same rules, and commands that do not say those words.
const BESIDE: &[(&str, &str)] = &[
    ("git push", "git -C push status"),
    ("git push", "git -C . status"),
    ("git push", "git --no-pager log push"),
    ("git push", "git --work-tree push status"),
    ("git push", "git log -S push"),
    ("git push", "git --no-pager"),
    ("git push --force", "git push origin"),
    ("cargo publish", "cargo --color=never test"),
    ("deploy prod", "deploy test prod"),
    ("deploy prod", "./x -v prod"),
];

#[test]
fn a_deny_or_a_review_binds_in_whatever_way_its_words_are_said() {
    let on = |prefix: &str| crate::support::command(&[prefix]);
    for (prefix, text) in AGAINST {
        let command = words(text);
        for answer in [Deny, Answer::Review] {
            let rules = || vec![rule("a", Allow), rule("d", answer).on(on(prefix))];
            assert_eq!(judged(rules(), Programs::KNOWN, &command), answer, "{prefix}: {text}");
        }
        // An allow says what it means, and so does what lifts a denial.
        let allow = vec![rule("a", Allow).on(on(prefix))];
        assert_eq!(judged(allow, Programs::KNOWN, &command), Deny, "{prefix}: {text}");
        let lifted = vec![rule("a", Allow), rule("d", Deny).unless([on(prefix)])];
        assert_eq!(judged(lifted, Programs::KNOWN, &command), Deny, "{prefix}: {text}");
        let narrowed = vec![rule("a", Allow).unless([on(prefix)])];
        assert_eq!(judged(narrowed, Programs::KNOWN, &command), Deny, "{prefix}: {text}");
        let plain = vec![rule("a", Allow), rule("d", Deny).unless([on(prefix)])];
        assert_eq!(judged(plain, Programs::KNOWN, &words(prefix)), Allow, "control: {prefix}");
    }
    for (prefix, text) in BESIDE {
        let rules = vec![rule("a", Allow), rule("d", Deny).on(on(prefix))];
        assert_eq!(judged(rules, Programs::KNOWN, &words(text)), Allow, "control: {prefix}: {text}");
    }
    // More options than anybody looks at: what comes after them may be anything.
    let many = |count: usize| words(&format!("git{} status", " -P".repeat(count)));
    let rules = || vec![rule("a", Allow), rule("d", Deny).on(on("git push"))];
    assert_eq!(judged(rules(), Programs::KNOWN, &many(300)), Deny);
    assert_eq!(judged(rules(), Programs::KNOWN, &many(200)), Allow, "control");
}

fn of(command: Command) -> Action {
    Action::Exec(command)
}

fn around(command: &Command) -> Result<Pattern, NoPattern> {
    Pattern::around(&of(command.clone()))
}

/// A13: what is granted for a pattern of commands never reaches through an interpreter, a launcher or an
/// option.
#[test]
fn a13_a_pattern_never_widens() {
    for text in [
        "sh -c x",
        "bash script.sh",
        "env x",
        "xargs rm",
        "sudo ls",
        "timeout 5 ls",
        "nice ls",
        "busybox ls",
        "npx x",
        "python3 a.py",
        "node a.js",
        "perl a.pl",
        "awk {print} a",
        "make",
        "make test",
        "npm run build",
        "cargo test",
        "gdb a",
        "docker run x",
        "strace ls",
        "java -jar a.jar",
    ] {
        assert!(around(&words(text)).is_err(), "{text}");
    }
    assert_eq!(around(&words("env x")), Err(NoPattern::Runs("env".into())));
    assert_eq!(around(&words("find . -exec x ;")), Err(NoPattern::Option("-exec".into())));
    for (_, text) in TRICKS {
        assert!(around(&words(text)).is_err(), "{text}");
    }
    for text in ["./git status", "/tmp/ls", "deploy a", "git", "git -s"] {
        assert!(around(&words(text)).is_err(), "{text}");
    }
    // A word of nothing is no subcommand: a pattern without one would be for all of them.
    for text in ["git~", "git~~push", "sh~-c~git \"\" push"] {
        assert!(around(&line(text)).is_err(), "{text}");
    }
    for text in ["sh~-c~git status; rm x", "sh~-c~git $X", "sh~-c~git status > x"] {
        assert!(around(&line(text)).is_err(), "{text}");
    }
    let shaped = |change: fn(&mut Command)| {
        let mut command = words("grep -n a b");
        change(&mut command);
        around(&command)
    };
    assert_eq!(shaped(|it| it.network = true), Err(NoPattern::Circumstances));
    assert_eq!(shaped(|it| it.background = true), Err(NoPattern::Circumstances));
    assert_eq!(shaped(|it| it.stdin = Some(Blob(b"x".to_vec()))), Err(NoPattern::Circumstances));
    assert_eq!(shaped(|it| drop(it.env.insert("A".into(), "x".into()))), Err(NoPattern::Circumstances));

    let grep = around(&words("grep -n a b")).unwrap();
    assert_eq!(grep.to_string(), "grep …");
    assert!(grep.covers(&of(words("grep -r c ."))), "control");
    for text in ["egrep a b", "./grep a b", "/bin/grep a b", "grepx a", "rg a", "env grep a"] {
        assert!(!grep.covers(&of(words(text))), "{text}");
    }
    assert!(!grep.covers(&of(line("sh~-c~grep a b; rm x"))) && !grep.covers(&of(line("sh~-c~grep $(rm x)"))));
    let find = around(&words("find . -name x")).unwrap();
    assert!(find.covers(&of(words("find src -type f"))) && !find.covers(&of(words("find . -exec rm {} +"))));
}

/// A13: what files of the workspace can steer has no pattern, whatever its words: whoever gives the next
/// command may have written them.
#[test]
fn a13_what_obeys_files_of_the_workspace_has_no_pattern() {
    for text in [
        "git status",
        "git diff",
        "git log -1",
        "hg status",
        "ack x",
        "patch -p1",
        "vim a",
        "less a",
        "ssh host",
    ] {
        let program = text.split(' ').next().unwrap().to_owned();
        assert_eq!(around(&words(text)), Err(NoPattern::Obeys(program)), "{text}");
        assert!(around(&line(&format!("sh~-c~{text}"))).is_err(), "{text}");
    }
    assert!(around(&words("cat .git/config")).is_ok(), "control");
}

/// A13: a yes to one that looked is none to one that writes.
#[test]
fn a13_a_pattern_of_looking_never_writes() {
    for (looks, writes) in [
        ("sed -n 1p a", "sed -i s/a/b/ a"),
        ("sed -n 1p a", "sed -n --in-pl=.bak s/a/b/ a"),
        ("sed -n 1p a", "sed -ni s/a/b/ a"),
        ("uniq a", "uniq a b"),
        ("uniq -c a", "uniq -c a b"),
        ("uniq +3 a", "uniq a +out"),
        ("uniq a", "uniq a +d/../out"),
        ("uniq a", "uniq -- a -out"),
        ("xxd a", "xxd a +out"),
        ("xxd a", "xxd -r a b"),
        ("tree src", "tree -o b src"),
        ("tree src", "tree -L 2 -R -H . src"),
        ("tcpdump -r a", "tcpdump -r a -w b"),
        ("file a", "file -C -m a"),
        ("sort a", "sort -o b a"),
    ] {
        let looking = around(&words(looks)).unwrap();
        assert!(looking.covers(&of(words(looks))), "control: {looks}");
        assert!(!looking.covers(&of(words(writes))) && around(&words(writes)).is_err(), "{writes}");
    }
}

type Change = fn(&mut Command);

/// A13: beyond the words, a pattern is for commands that are written, placed and bounded like the one that
/// was shown.
#[test]
fn a13_a_pattern_keeps_to_its_circumstances() {
    let grep = around(&words("grep -n a")).unwrap();
    let changed = |change: fn(&mut Command)| {
        let mut command = words("grep -r c .");
        change(&mut command);
        grep.covers(&of(command.clone()))
    };
    assert!(changed(|_| ()), "control");
    assert!(changed(|it| it.limits.wall_ms -= 1), "control: less is covered");
    let wider: [(&str, Change); 9] = [
        ("directory", |it| it.cwd = "/w/sub".into()),
        ("network", |it| it.network = true),
        ("input", |it| it.stdin = Some(Blob(b"x".to_vec()))),
        ("variables", |it| drop(it.env.insert("A".into(), "x".into()))),
        ("time", |it| it.limits.wall_ms += 1),
        ("memory", |it| it.limits.memory_bytes += 1),
        ("disk", |it| it.limits.disk_bytes += 1),
        ("processes", |it| it.limits.pids += 1),
        ("output", |it| it.limits.output_bytes += 1),
    ];
    for (what, change) in wider {
        assert!(!changed(change), "{what}");
        // The control: around the changed command itself there is a pattern that does, or none at all.
        let mut command = words("grep -r c .");
        change(&mut command);
        let around = around(&command);
        assert!(around.map_or(true, |wider| wider.covers(&of(command.clone()))), "control: {what}");
    }
    // A shell's line and a command without a shell are two things, and so are two shells.
    let line_of = around(&line("sh~-c~grep -n a")).unwrap();
    assert!(line_of.covers(&of(line("sh~-c~grep -r c ."))), "control");
    for text in ["grep~a", "bash~-c~grep a", "/bin/sh~-c~grep a", "./sh~-c~grep a", "/tmp/sh~-c~grep a"] {
        assert!(!line_of.covers(&of(line(text))), "{text}");
    }
    assert!(!grep.covers(&of(line("sh~-c~grep a"))));
    assert_eq!(line_of.bare().unwrap().argv, ["sh", "-c", "grep"]);
    assert_eq!(grep.bare().unwrap().argv, ["grep"]);
    assert!(grep.words().contains("every `grep …` in /home/ann/proj "), "{}", grep.words());
}

/// A file of a project that is called like a shell is no shell: what its line says is not what it runs.
#[test]
fn a_file_that_is_called_sh_hides_what_it_runs() {
    for (program, known) in
        [("sh", true), ("/bin/sh", true), ("/usr/bin/bash", true), ("./sh", false), ("/w/bash", false)]
    {
        let command = line(&format!("{program}~-c~git status"));
        let allow = vec![rule("a", Allow).on(crate::support::command(&["git"]))];
        assert_eq!(judged(allow, Programs::KNOWN, &command) == Allow, known, "{program}");
    }
}

/// What is granted for the pages of a server is that server, and what only fetches there.
#[test]
fn a_pattern_of_pages_is_one_server_and_sends_nothing() {
    let fetch = |method: &str, url: &str| Action::Fetch {
        request: bailey_protocol::HttpRequest { method: method.into(), ..request(url) },
        raw: false,
    };
    let pages = Pattern::around(&fetch("GET", "https://Docs.Example.com/a")).unwrap();
    assert_eq!(pages.to_string(), "https://docs.example.com:443/…");
    for url in ["https://docs.example.com/b?c", "https://docs.example.com:443/", "https://docs.example.com./"]
    {
        assert!(pages.covers(&fetch("GET", url)) && pages.covers(&fetch("HEAD", url)), "{url}");
    }
    for url in [
        "http://docs.example.com/a",
        "https://docs.example.com:8443/a",
        "https://example.com/a",
        "https://x.docs.example.com/",
    ] {
        assert!(!pages.covers(&fetch("GET", url)), "{url}");
    }
    assert!(!pages.covers(&fetch("POST", "https://docs.example.com/a")));
    let sends = |change: fn(&mut bailey_protocol::HttpRequest)| {
        let mut asked = request("https://docs.example.com/a");
        change(&mut asked);
        Action::Fetch { request: asked, raw: false }
    };
    let header = sends(|it| it.headers.push(("a".into(), bailey_protocol::HeaderValue::Text("b".into()))));
    let body = sends(|it| it.body = Blob(b"x".to_vec()));
    for action in [
        header,
        body,
        http("https://docs.example.com/a"),
        relay("GET", "https://docs.example.com/a", Some(0)),
    ] {
        assert!(!pages.covers(&action) && Pattern::around(&action).is_err(), "{action:?}");
    }
    assert!(pages.is_of_home() && !around(&words("grep a b")).unwrap().is_of_home());
}

/// A denial of one program, over everything else allowed.
fn denied(program: &str, command: &str) -> (Answer, String) {
    let rules = vec![
        rule("a", Allow),
        Rule { text: "not here".into(), ..rule("no", Deny).on(crate::support::command(&[program])) },
    ];
    let command = if command.contains('\n') || command.contains([';', '$', '|']) {
        line(&format!("sh~-c~{command}"))
    } else {
        words(command)
    };
    let decided = decide(&Policy::new(vec![], rules), Agent, Action::Exec(command));
    let said = decided.reasons.iter().find(|reason| reason.rule == "no");
    (answer(&decided), said.map(|reason| reason.text.clone()).unwrap_or_default())
}

/// A runner of the project's own tests, a look at git's settings and a loop over known words bind no rule
/// about another program. A rule that names them, or what they run, still binds; and so does it where they
/// are not that plain.
#[test]
fn a_harmless_wrapper_binds_no_rule_about_another_program() {
    for command in [
        "python3 -m unittest",
        "python3 -m unittest -v test_prices",
        "python3 -X dev -m pytest -q",
        "git config --show-origin user.name",
        "git config --global --list",
        "git config user.email ann@example.invalid",
        "for i in $(seq 1 20); do echo step $i of 20; sleep 1; done",
        "for f in a.txt b.txt; do cat \"$f\" | wc -l; done; ls",
    ] {
        assert_eq!(denied("pip", command), (Allow, String::new()), "{command}");
    }
    for (program, command) in [
        ("python3", "python3 -m unittest"),
        ("pytest", "python3 -m pytest"),
        ("git", "git config --list"),
        ("git config", "git config --list"),
        ("sleep", "for i in $(seq 1 20); do echo step $i of 20; sleep 1; done"),
        ("seq", "for i in $(seq 1 20); do echo $i; done"),
        ("pip", "for i in 1 2; do pip install x$i; done"),
        ("pip install", "for what in download install; do pip $what x; done"),
        ("pip", "for p in ls pip; do $p x; done"),
        // Not that plain.
        ("pip", "python3 -m pip install x"),
        ("pip", "python3 -m venv x"),
        ("pip", "python3 -c x -m unittest"),
        ("pip", "./python3 -m unittest.py"),
        ("pip", "python3 -i -m unittest"),
        ("pip", "git config alias.x !pip"),
        ("pip", "git config core.hooksPath x"),
        ("pip", "git config --edit"),
        ("pip", "git -c core.pager=x config --list"),
        ("pip", "for i in *; do $i install; done"),
        ("pip", "for i in a; do read i; $i; done"),
        ("pip", "for i in a; do if true; then $i; fi; done"),
    ] {
        assert_eq!(denied(program, command).0, Deny, "{program}: {command}");
    }
}

/// No allow for what a loop repeats covers the loop: it asks for nothing that it did not ask for before.
#[test]
fn an_allow_covers_no_loop() {
    let rules = || vec![rule("a", Allow).on(crate::support::command(&["echo"]))];
    let loops = line("sh~-c~for i in a b; do echo $i; done");
    assert_eq!(judged(rules(), Programs::KNOWN, &loops), Deny);
    assert_eq!(judged(rules(), Programs::KNOWN, &line("sh~-c~echo a; echo b")), Allow, "the control");
}

/// A denial of a command that only may run what the rule names says so.
#[test]
fn a_denial_in_doubt_says_what_the_command_may_run() {
    for (command, why) in [
        (
            "python3 -m pip",
            "this command may run `pip`, for `-m` makes `python3` run something else: not here",
        ),
        (
            "eval \"$x\"; ls",
            "this command may run `pip`, for what it runs is not known for certain: not here",
        ),
        ("/opt/pip install x", "this command may run `pip`, for it is `/opt/pip install x`: not here"),
    ] {
        assert_eq!(denied("pip", command), (Deny, why.into()), "{command}");
    }
    assert_eq!(denied("pip", "pip install x"), (Deny, "not here".into()), "the control");
}
