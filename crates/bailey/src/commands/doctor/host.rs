//! What the kernel of this machine offers, as its own files say. The walls are tried besides: this says why
//! one is missing.

use super::{Finding, Grade};
use bailey_protocol::Level;
use bailey_sandbox::{Confined, Confinement};
use std::fs;

/// The oldest kernel with Landlock and overlays in user namespaces.
const KERNEL_MIN: (u32, u32) = (5, 13);

/// A file of the kernel's own; none when it is not there.
pub(super) fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Whether the main process will bind itself, tried on a thread.
pub(super) fn confinement() -> Finding {
    const CHECK: &str = "own process";
    match Confinement::default().rehearse() {
        Ok(Confined { landlock_abi, absent }) if absent.is_empty() => Finding::ok(
            CHECK,
            format!("confines itself before it talks to a model (landlock ABI {landlock_abi}, seccomp)"),
        ),
        Ok(Confined { landlock_abi, absent }) => Finding::warn(
            CHECK,
            format!(
                "confines itself (landlock ABI {landlock_abi}, seccomp), but not from {}",
                absent.join("; ")
            ),
            "use a newer kernel: 6.7 judges ports, 6.10 devices, 6.12 signals and abstract sockets",
        ),
        Err(error) => Finding::fail(
            CHECK,
            error.to_string(),
            "fix landlock and seccomp above; without them Bailey starts nothing that talks to a model",
        ),
    }
}

/// What these files say, where namespaces can be made or not, and the owner takes no less than this of
/// commands.
pub(super) fn kernel(read: impl Fn(&str) -> Option<String>, can_be_made: bool, taken: Level) -> Vec<Finding> {
    let mut namespaces = namespaces(&read, can_be_made);
    if namespaces.grade == Grade::Fail && taken <= Level::Landlock {
        namespaces.grade = Grade::Warn;
        namespaces.says.push_str("; your config.toml takes `landlock` in their place");
    }
    vec![version(&read), namespaces, landlock(&read), seccomp(&read), overlay(&read)]
}

fn version(read: &impl Fn(&str) -> Option<String>) -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= KERNEL_MIN => {
            Finding::ok("kernel", format!("Linux {release}"))
        }
        _ => Finding::fail(
            "kernel",
            format!("Linux {release} is too old for the walls"),
            format!("use a kernel of version {}.{} or newer", KERNEL_MIN.0, KERNEL_MIN.1),
        ),
    }
}

fn namespaces(read: &impl Fn(&str) -> Option<String>, can_be_made: bool) -> Finding {
    const CHECK: &str = "user namespaces";
    let is = |path: &str, value: &str| read(path).as_deref() == Some(value);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return Finding::fail(
            CHECK,
            "switched off (user.max_user_namespaces is 0)",
            "sudo sysctl user.max_user_namespaces=10000",
        );
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return Finding::fail(
            CHECK,
            "switched off for ordinary users (kernel.unprivileged_userns_clone is 0)",
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        );
    }
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        let profile = "a profile with `userns,` for this program in /etc/apparmor.d, or: \
                       sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
        return Finding::warn(
            CHECK,
            "restricted by AppArmor; `walls` below shows whether that stops commands",
            profile,
        );
    }
    match read("/proc/self/uid_map") {
        Some(_) if can_be_made => Finding::ok(CHECK, "allowed"),
        Some(_) => Finding::fail(
            CHECK,
            "the kernel has them, and something here forbids to make them: a container's filter, or a security module",
            "the container's options in `bailey guide troubleshooting`, or what the walls below say",
        ),
        None => Finding::fail(CHECK, "the kernel has none", "use a kernel with CONFIG_USER_NS"),
    }
}

fn landlock(read: &impl Fn(&str) -> Option<String>) -> Finding {
    const CHECK: &str = "landlock";
    match read("/sys/kernel/security/lsm") {
        Some(list) if list.split(',').any(|module| module == "landlock") => Finding::ok(CHECK, "active"),
        Some(list) => Finding::fail(
            CHECK,
            format!("not among the active security modules ({list})"),
            format!("boot with lsm=landlock,{list}"),
        ),
        // Not every container shows it; the walls tell.
        None => Finding::ok(CHECK, "/sys/kernel/security is not shown here; see `walls` below"),
    }
}

fn seccomp(read: &impl Fn(&str) -> Option<String>) -> Finding {
    const CHECK: &str = "seccomp";
    match read("/proc/sys/kernel/seccomp/actions_avail") {
        Some(actions) if actions.split(' ').any(|action| action == "errno") => {
            Finding::ok(CHECK, "available")
        }
        _ => Finding::fail(CHECK, "the kernel has no filters", "use a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

fn overlay(read: &impl Fn(&str) -> Option<String>) -> Finding {
    const CHECK: &str = "overlay";
    match read("/proc/filesystems") {
        Some(list) if list.split_whitespace().any(|word| word == "overlay") => {
            Finding::ok(CHECK, "available")
        }
        _ => Finding::warn(CHECK, "not loaded yet, or missing; see `walls` below", "sudo modprobe overlay"),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Grade, kernel};
    use bailey_protocol::Level;

    fn grades_where(can_be_made: bool, taken: Level, change: &[(&str, &str)]) -> Vec<(&'static str, Grade)> {
        let usual = [
            ("/proc/sys/kernel/osrelease", "6.8.0-45-generic"),
            ("/proc/sys/user/max_user_namespaces", "63000"),
            ("/proc/self/uid_map", "0 0 1"),
            ("/sys/kernel/security/lsm", "lockdown,capability,landlock,yama,apparmor"),
            ("/proc/sys/kernel/seccomp/actions_avail", "kill_process kill_thread trap errno trace log allow"),
            ("/proc/filesystems", "nodev\toverlay\n\text4"),
        ];
        let read = |path: &str| {
            let all = change.iter().chain(&usual);
            all.into_iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned())
        };
        kernel(read, can_be_made, taken).into_iter().map(|finding| (finding.check, finding.grade)).collect()
    }

    fn grades(change: &[(&str, &str)]) -> Vec<(&'static str, Grade)> {
        grades_where(true, Level::Native, change)
    }

    #[test]
    fn namespaces_are_no_failure_where_landlock_is_taken() {
        let off = [("/proc/sys/user/max_user_namespaces", "0")];
        let named = |grades: Vec<(&'static str, Grade)>| {
            grades.into_iter().find(|(check, _)| *check == "user namespaces")
        };
        let of = |level| named(grades_where(true, level, &off));
        assert_eq!(of(Level::Native), Some(("user namespaces", Grade::Fail)), "the control");
        assert_eq!(of(Level::Landlock), Some(("user namespaces", Grade::Warn)));
        // What no file tells of, such as a container's filter.
        let tried = |can_be_made| named(grades_where(can_be_made, Level::Native, &[]));
        assert_eq!(tried(true), Some(("user namespaces", Grade::Ok)), "the control");
        assert_eq!(tried(false), Some(("user namespaces", Grade::Fail)));
    }

    #[test]
    fn each_missing_feature_is_found_and_nothing_else() {
        assert!(grades(&[]).iter().all(|(_, grade)| *grade == Grade::Ok), "the control");
        for (path, value, check, grade) in [
            ("/proc/sys/kernel/osrelease", "4.19.0", "kernel", Grade::Fail),
            ("/proc/sys/kernel/osrelease", "5.12.9", "kernel", Grade::Fail),
            ("/proc/sys/user/max_user_namespaces", "0", "user namespaces", Grade::Fail),
            ("/proc/sys/kernel/unprivileged_userns_clone", "0", "user namespaces", Grade::Fail),
            ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "user namespaces", Grade::Warn),
            ("/sys/kernel/security/lsm", "capability,yama", "landlock", Grade::Fail),
            ("/proc/sys/kernel/seccomp/actions_avail", "", "seccomp", Grade::Fail),
            ("/proc/filesystems", "ext4", "overlay", Grade::Warn),
        ] {
            let found: Vec<_> =
                grades(&[(path, value)]).into_iter().filter(|(_, grade)| *grade != Grade::Ok).collect();
            assert_eq!(found, [(check, grade)], "{path} = {value}");
        }
    }
}
