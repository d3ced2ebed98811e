//! Programs, and what their options can run or reach: data to be reviewed as data. It sorts, it is no wall:
//! whatever is missing here runs inside the same walls.
//!
//! How options are compared: a name with two dashes also abbreviated, as GNU's `getopt_long` reads it, and
//! with `=VALUE`; one letter after a dash also among others and with its value glued to it; anything else as
//! it stands.
//!
//! `values` and `flags` tell operands from the values of options, where the place of an operand matters: in
//! programs with subcommands, scripts or code as operands. An option belongs there when every program of its
//! line, in every version, takes the next word, or none does; of any other, both is thought possible.

use super::{Nature, Program};

const PLAIN: Program = Program {
    names: &[],
    nature: Nature::Plain,
    options: &[],
    globals: &[],
    subcommands: &[],
    contains: &[],
    has_subcommands: false,
    values: &[],
    flags: &[],
    writes: &[],
    operands_max: usize::MAX,
    obeys: false,
};
const BUILDER: Program = Program { nature: Nature::Builder, has_subcommands: true, ..PLAIN };
const INTERPRETER: Program = Program { nature: Nature::Interpreter, ..PLAIN };
const LAUNCHER: Program = Program { nature: Nature::Launcher, ..PLAIN };

/// Variables that no program takes for more than how it prints, counts or sorts. Any other may name a file, a
/// program or an option: shells take functions from variables, tools their options (`TAR_OPTIONS`), and
/// whatever is configured by a file finds it by `HOME`. `DEBUG` and `NODE_ENV` are not here: projects load
/// what these name.
pub(super) const HARMLESS: &[&str] = &[
    // Languages, times, terminals.
    "LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
    "TZ", "SOURCE_DATE_EPOCH", "TERM", "COLUMNS", "LINES",
    // Colours.
    "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CARGO_TERM_COLOR",
    // Nobody is there to be asked.
    "CI",
    // What is logged, and how tests run.
    "RUST_LOG", "RUST_BACKTRACE", "RUST_LIB_BACKTRACE", "RUST_TEST_THREADS", "RUST_TEST_NOCAPTURE",
    "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
];

/// The table.
pub(super) const KNOWN: &[Program] = &[
    // Programs that only look, compare or compute.
    Program {
        names: &[
            "basename", "cat", "cksum", "cmp", "comm", "cut", "date", "df", "diff", "dirname", "du", "echo", "expand",
            "false", "fold", "grep", "egrep", "fgrep", "head", "hexdump", "id", "join", "jq", "ls", "md5sum", "nl",
            "od", "paste", "pr", "ps", "pwd", "readlink", "realpath", "seq", "sha1sum", "sha256sum", "sha512sum",
            "sleep", "stat", "strings", "tac", "tail", "tr", "true", "tsort", "uname", "unexpand",
            "wc", "which", "whoami",
        ],
        ..PLAIN
    },
    // The same, which write where they are told to.
    Program { names: &["uniq", "xxd"], operands_max: 1, ..PLAIN },
    Program { names: &["tree"], writes: &["-o", "--output", "-R"], ..PLAIN },
    Program { names: &["file"], writes: &["-C", "--compile"], ..PLAIN },
    // It runs `ed` where what it reads says so.
    Program { names: &["patch"], obeys: true, ..PLAIN },
    // Programs that change files, and run nothing.
    Program {
        names: &[
            "chmod", "cp", "gunzip", "gzip", "ln", "mkdir", "mktemp", "mv", "rm", "rmdir", "tee",
            "touch", "truncate", "unzip", "xz", "zstd",
        ],
        ..PLAIN
    },
    // Tools of one purpose, and the options by which they run others.
    // Of shells that have them inside: they evaluate the index of a variable's name.
    Program { names: &["printf", "test", "["], options: &["-v", "-R"], contains: &["$", "`"], ..PLAIN },
    Program { names: &["install"], options: &["-s", "--strip", "--strip-program"], ..PLAIN },
    Program { names: &["find"], options: &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"], ..PLAIN },
    Program { names: &["fd", "fdfind"], options: &["-x", "-X", "--exec", "--exec-batch"], ..PLAIN },
    Program { names: &["rg"], options: &["--pre", "--hostname-bin", "-z", "--search-zip"], ..PLAIN },
    Program { names: &["ag", "ack"], obeys: true, options: &["--pager", "--output"], ..PLAIN },
    Program { names: &["sort"], options: &["--compress-program", "-o", "--output"], ..PLAIN },
    Program { names: &["split", "csplit"], options: &["--filter"], ..PLAIN },
    Program {
        names: &["tar", "bsdtar"],
        options: &["--to-command", "--checkpoint-action", "-I", "--use-compress-program", "-F", "--info-script",
            "--new-volume-script", "--rsh-command", "--rmt-command"],
        ..PLAIN
    },
    Program { names: &["zip"], options: &["-T", "-TT", "--unzip-command", "--test"], ..PLAIN },
    Program { names: &["cpio"], options: &["--rsh-command"], ..PLAIN },
    Program { names: &["man"], obeys: true, options: &["-P", "--pager", "-H", "--html", "-C", "--config-file"], ..PLAIN },
    Program { names: &["less", "more", "most"], obeys: true, options: &["-o", "-O", "--log-file", "-k", "--lesskey-file"], contains: &["+"], ..PLAIN },
    Program { names: &["tcpdump"], options: &["-z"], writes: &["-w"], ..PLAIN },
    Program { names: &["nmap"], obeys: true, options: &["--script"], ..PLAIN },
    Program { names: &["curl"], obeys: true, options: &["-K", "--config", "--engine"], ..PLAIN },
    Program { names: &["wget"], obeys: true, options: &["--use-askpass", "-e", "--execute", "--config"], ..PLAIN },
    Program { names: &["rsync"], obeys: true, options: &["-e", "--rsh", "--rsync-path", "--daemon"], ..PLAIN },
    Program { names: &["ssh", "scp", "sftp"], obeys: true, options: &["-o", "-F", "-S", "-D", "-w"], ..PLAIN },
    Program { names: &["openssl"], obeys: true, options: &["-engine", "-provider", "-provider-path", "-config"], ..PLAIN },
    Program { names: &["sqlite3"], options: &["-cmd", "-init"], contains: &[".", "load_extension", "edit("], ..INTERPRETER },
    Program { names: &["psql", "mysql"], obeys: true, options: &["-c", "-f", "-e", "--command", "--file", "--execute"], contains: &["\\!"], ..PLAIN },
    Program { names: &["ctags"], obeys: true, options: &["--options", "-L"], ..PLAIN },
    // Version control.
    Program {
        names: &["git"],
        obeys: true,
        globals: &["-c", "--config-env", "--exec-path", "-p", "--paginate", "-h", "--help"],
        options: &["--upload-pack", "--receive-pack", "--exec", "-x", "--ext-diff", "--textconv", "-O", "--open-files-in-pager",
            "--extcmd", "--upload-archive", "--interactive", "-i", "--template", "--output", "--edit", "-e", "-u",
            // Of `clone`: a setting for the copy, such as its hooks.
            "-c", "--config"],
        subcommands: &["bisect", "config", "credential", "daemon", "difftool", "filter-branch", "for-each-repo", "gui", "help", "hook", "instaweb",
            "maintenance", "merge-index", "mergetool", "submodule", "web--browse", "send-email", "imap-send", "citool"],
        contains: &["ext::", "core.sshCommand", "core.fsmonitor", "core.pager", "core.editor", "alias."],
        has_subcommands: true,
        values: &["-C", "--git-dir", "--work-tree", "--namespace", "--attr-source"],
        flags: &["-P", "--no-pager", "--bare", "--no-replace-objects", "--no-lazy-fetch", "--no-optional-locks", "--no-advice",
            "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs", "-v", "--version"],
        ..PLAIN
    },
    Program { names: &["hg"], obeys: true, options: &["--config", "--ssh", "--remotecmd", "-R", "--repository", "--cwd"], subcommands: &["extdiff", "debugshell"], has_subcommands: true,
        values: &["--encoding", "--encodingmode", "--color", "--pager"],
        flags: &["-y", "--noninteractive", "-q", "--quiet", "-v", "--verbose", "--debug", "--traceback", "--time", "--profile", "--hidden"], ..PLAIN },
    Program { names: &["svn"], obeys: true, options: &["--diff-cmd", "--diff3-cmd", "--editor-cmd", "--config-option", "--config-dir"], has_subcommands: true, ..PLAIN },
    // Editors and debuggers.
    Program { names: &["vi", "vim", "nvim", "view", "ex", "vimdiff"], obeys: true, options: &["-c", "--cmd", "-S", "-s", "-u", "-U", "-w", "-W", "-l", "-e", "-E"], contains: &["+"], ..PLAIN },
    // Its commands come from standard input, whatever its arguments are.
    Program { names: &["ed", "red"], contains: &[""], ..INTERPRETER },
    Program { names: &["emacs", "emacsclient"], obeys: true, options: &["--eval", "--execute", "-e", "-f", "--funcall", "-l", "--load", "--batch", "--script", "--insert"], ..PLAIN },
    Program { names: &["nano", "pico"], obeys: true, options: &["-s", "--speller", "-f", "--rcfile", "--formatter"], ..PLAIN },
    // Languages: their options that hold code. Without a file they read it from standard input.
    Program { names: &["python", "pypy"], options: &["-c", "-m", "-i"],
        values: &["-W", "-X", "--check-hash-based-pycs"],
        flags: &["-b", "-B", "-d", "-E", "-I", "-O", "-P", "-q", "-s", "-S", "-u", "-v", "-x"], ..INTERPRETER },
    Program { names: &["node", "nodejs"], options: &["-e", "--eval", "-p", "--print", "-r", "--require", "--import", "--loader", "--experimental-loader", "-i", "--interactive"],
        values: &["-C", "--conditions", "--title", "--input-type", "--redirect-warnings"],
        flags: &["-c", "--check", "--test", "--watch", "--no-warnings", "--trace-warnings", "--no-deprecation", "--trace-deprecation",
            "--enable-source-maps", "--expose-gc", "--experimental-strip-types", "--experimental-vm-modules"], ..INTERPRETER },
    Program { names: &["deno"], subcommands: &["eval", "repl", "x", "task", "install", "compile"], options: &["--eval", "-r", "--import-map", "--config"], has_subcommands: true,
        values: &["-L", "--log-level"], flags: &["-q", "--quiet", "--unstable"], ..INTERPRETER },
    Program { names: &["perl"], options: &["-e", "-E", "-M", "-m", "-I", "-x", "-d", "-n", "-p"],
        flags: &["-a", "-c", "-f", "-l", "-s", "-S", "-t", "-T", "-U", "-w", "-W", "-X"], ..INTERPRETER },
    Program { names: &["ruby"], options: &["-e", "-r", "-I", "-x", "-n", "-p", "-S"],
        values: &["-C", "-E", "--encoding", "--external-encoding", "--internal-encoding"],
        flags: &["-a", "-c", "-l", "-s", "-U", "-v", "-w", "-W", "--verbose", "--yjit"], ..INTERPRETER },
    Program { names: &["php"], options: &["-r", "-B", "-R", "-E", "-F", "-d", "-a", "-S", "-z"],
        // The value of `-f` is the file itself.
        values: &["-c", "-t"], flags: &["-C", "-e", "-f", "-i", "-l", "-m", "-n", "-q", "-s", "-v", "-w"], ..INTERPRETER },
    Program { names: &["lua", "luajit"], options: &["-e", "-l", "-i"], flags: &["-E", "-v", "-W"], ..INTERPRETER },
    Program { names: &["Rscript", "R"], options: &["-e", "-f", "--file"],
        flags: &["--vanilla", "--verbose", "--no-save", "--no-restore", "--no-environ", "--quiet"], ..INTERPRETER },
    Program { names: &["ghc", "runghc", "ghci", "ocaml", "julia", "scala", "groovy", "elixir", "erl", "swift", "osascript"], options: &["-e", "-E", "--eval", "-eval", "-r", "-i", "-F"], ..INTERPRETER },
    Program { names: &["tclsh", "wish", "expect", "gnuplot", "bc", "dc", "m4"], options: &["-c", "-e", "-f"], ..INTERPRETER },
    Program { names: &["awk", "gawk", "mawk", "nawk"], options: &["-e", "--source", "-l", "--load", "-i", "--include", "-D", "--debug"], contains: &["system", "|", "getline", ">", "@load"],
        // The value of `-f` is the program itself.
        values: &["-F", "-v", "--field-separator", "--assign"],
        flags: &["-b", "-c", "-f", "-k", "-M", "-n", "-N", "-O", "-P", "-S", "--csv", "--file", "--posix", "--sandbox", "--traditional"], ..INTERPRETER },
    Program { names: &["sed", "gsed"], options: &["-e", "--expression", "-f", "--file"], writes: &["-i", "--in-place"], nature: Nature::Sed,
        values: &["-l", "--line-length"],
        flags: &["-b", "-E", "-i", "-n", "-r", "-s", "-u", "-z", "--debug", "--follow-symlinks", "--in-place", "--null-data", "--posix",
            "--quiet", "--regexp-extended", "--sandbox", "--separate", "--silent", "--unbuffered"], ..PLAIN },
    // Builders: they run what the project's files say, which the walls hold.
    Program { names: &["make", "gmake", "bmake"], options: &["--eval", "-E", "-f", "--file", "--makefile", "-I", "--include-dir"], contains: &["SHELL=", "SHELLFLAGS=", "MAKEFLAGS="], ..BUILDER },
    Program { names: &["ninja"], options: &["-f", "-t"], ..BUILDER },
    Program { names: &["cmake"], options: &["-P", "-E", "-C"], contains: &["_LAUNCHER", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER"], ..BUILDER },
    Program { names: &["cargo"], options: &["--config", "-Z", "--manifest-path"], subcommands: &["install", "script"],
        values: &["-C", "--color"], flags: &["-q", "--quiet", "-v", "--verbose", "--frozen", "--locked", "--offline"], ..BUILDER },
    Program { names: &["rustc", "cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "javac"], options: &["-C", "-B", "-wrapper", "-Z", "-J"], contains: &["linker=", "-fplugin", "-specs="], ..BUILDER },
    Program { names: &["go"], options: &["-exec", "-toolexec", "-vettool", "-overlay", "-modfile"], subcommands: &["run", "generate", "tool", "env", "install"], values: &["-C"], ..BUILDER },
    Program { names: &["npm", "pnpm", "yarn"], options: &["--script-shell", "--node-options", "-c", "--call", "--shell", "--prefix", "--globalconfig", "--userconfig"], subcommands: &["exec", "x", "dlx", "explore", "config", "set", "create", "init", "edit"],
        flags: &["-s", "--silent"], ..BUILDER },
    Program { names: &["bun"], options: &["-e", "--eval", "-p", "--print", "-r", "--preload", "--shell"], subcommands: &["x", "exec", "repl", "create"],
        values: &["--cwd"], flags: &["--bun", "--hot", "--silent", "--smol", "--watch"], ..BUILDER },
    Program { names: &["pip", "pipx"], options: &["--python", "--config-settings", "--global-option"], subcommands: &["run", "config"],
        values: &["--cache-dir", "--cert", "--client-cert", "--exists-action", "--log", "--proxy", "--retries", "--timeout", "--trusted-host"],
        flags: &["-q", "--quiet", "-v", "--verbose", "--isolated", "--no-color", "--no-input", "--disable-pip-version-check"], ..BUILDER },
    Program { names: &["uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "bundler", "mise", "asdf", "direnv", "conda"], options: &["--with", "--from", "--python"], subcommands: &["run", "exec", "x", "tool", "develop", "shell"],
        values: &["--directory", "--project"], flags: &["-q", "--quiet", "-v", "--verbose"], ..BUILDER },
    // Each of its settings is an option, and some of these name programs; others take two values.
    Program { names: &["nix"], options: &["--option", "--arg", "--argstr", "--expr", "--override-flake", "--plugin-files", "--post-build-hook",
            "--pre-build-hook", "--diff-hook", "-c", "--command"],
        subcommands: &["run", "develop", "shell", "repl", "fmt"], flags: &["-L", "-v", "--offline", "--quiet", "--verbose"], ..BUILDER },
    Program { names: &["gradle", "gradlew", "mvn", "mvnw", "ant", "sbt", "bazel", "buck"], options: &["-I", "--init-script", "-b", "--build-file", "-D", "-f", "--file", "--run_under"], ..BUILDER },
    Program { names: &["rake", "just", "task", "invoke", "fab", "tox", "nox", "meson", "scons"], options: &["-e", "--execute", "-f", "--rakefile", "-r", "--require", "--shell", "--command", "-c", "-x"], ..BUILDER },
    Program { names: &["pytest", "py.test", "jest", "vitest", "mocha", "rspec"], options: &["-p", "-c", "-o", "--rootdir", "--confcutdir", "--config", "-r", "--require", "--globalSetup"], ..BUILDER },
    // Launchers: what runs is among their arguments.
    Program {
        names: &[
            "sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "ash", "rbash", "pwsh", "nu",
            "env", "xargs", "parallel", "sudo", "doas", "su", "runuser", "pkexec", "nohup", "nice", "ionice", "chrt", "taskset",
            "timeout", "setsid", "stdbuf", "unbuffer", "busybox", "toybox", "watch", "entr", "flock", "script", "time", "command",
            "builtin", "exec", "eval", "source", ".", "unshare", "nsenter", "chroot", "proot", "bwrap", "firejail", "setpriv",
            "capsh", "setarch", "linux32", "linux64", "strace", "ltrace", "gdb", "lldb", "perf", "valgrind", "catchsegv",
            "systemd-run", "start-stop-daemon", "at", "batch", "crontab", "screen", "tmux", "dtach", "npx", "pnpx", "bunx",
            "uvx", "corepack", "docker", "podman", "nerdctl", "kubectl", "lxc", "vagrant", "multipass", "qemu-x86_64",
            "qemu-aarch64", "wine", "mono", "dotnet", "java", "ssh-agent", "dbus-run-session", "xvfb-run", "faketime", "torsocks",
            "proxychains", "rlwrap", "hyperfine", "cpulimit", "prlimit", "choom", "numactl", "fakeroot", "run-parts",
            "ld.so", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "rustup", "run0",
            "sg", "runcon", "chronic", "ifne", "pee", "mispipe", "lckdo", "sshpass", "dumb-init", "tini", "catatonit", "gosu",
            "su-exec", "setuidgid", "chpst", "softlimit", "i386", "x86_64", "uname26", "cgexec", "aa-exec", "coreutils",
            "nix-shell", "eatmydata", "daemonize", "nsjail", "apptainer", "singularity", "distrobox", "toolbox", "flatpak",
            "abduco", "watchexec", "nodemon", "cross-env", "dotenv", "ccache", "sccache", "distcc", "rr", "gdbserver",
        ],
        ..LAUNCHER
    },
];
