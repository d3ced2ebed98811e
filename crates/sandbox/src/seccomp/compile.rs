//! From the table to instructions of the classic BPF machine (linux/filter.h, linux/seccomp.h).

use super::table::{self, FilterAction, Row, Test};
use crate::sys::{Instruction, SeccompSecret};

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The bit of x32 calls, which share the architecture value of x86-64.
const X32: u32 = 0x4000_0000;

const SECCOMP: u32 = libc::SYS_seccomp as u32;

#[expect(clippy::cast_possible_truncation, reason = "opcodes are 16 bits wide; libc types them as 32")]
mod op {
    pub(super) const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    pub(super) const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    pub(super) const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
    pub(super) const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    pub(super) const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    pub(super) const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
}

/// Compiles a list, which knows the row of a number.
pub(super) fn compile(row: impl Fn(u32) -> Option<&'static Row>) -> Vec<Instruction> {
    [&head()[..], &search(&ranges(row))].concat()
}

/// The same program, in which seccomp(2) is allowed with these words in the arguments behind its own, and
/// without them denied.
pub(super) fn with_door(program: &[Instruction], words: SeccompSecret) -> Vec<Instruction> {
    let (head, search) = program.split_at(head().len().min(program.len()));
    let door = [
        branch(op::IF_EQUAL, SECCOMP, 0, 6),
        plain(op::LOAD, ARGUMENTS + 8 * 3),
        branch(op::IF_EQUAL, words[0], 0, 3),
        plain(op::LOAD, ARGUMENTS + 8 * 4),
        branch(op::IF_EQUAL, words[1], 0, 1),
        answer(FilterAction::Allowed),
        answer(FilterAction::Denied),
    ];
    [head, &door, search].concat()
}

/// What every program begins with; behind it, the number is in the accumulator.
fn head() -> [Instruction; 6] {
    [
        plain(op::LOAD, ARCHITECTURE),
        branch(op::IF_EQUAL, table::ARCHITECTURE, 1, 0),
        answer(FilterAction::Kill),
        plain(op::LOAD, NUMBER),
        branch(op::IF_AT_LEAST, X32, 0, 1),
        answer(FilterAction::Denied),
    ]
}

/// What to do from one number on, up to the next range's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    from: u32,
    leaf: Leaf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Leaf {
    Answer(FilterAction),
    /// The answer of the first of which all tests hold.
    Ways(Vec<(&'static [Test], FilterAction)>),
}

/// All numbers from 0, neighbours with the same answer joined.
fn ranges(row: impl Fn(u32) -> Option<&'static Row>) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    let mut push = |from: u32, leaf: Leaf| {
        let is_same = ranges.last().is_some_and(|last| last.leaf == leaf && matches!(leaf, Leaf::Answer(_)));
        if !is_same {
            ranges.push(Range { from, leaf });
        }
    };
    for number in 0..=table::NEWEST {
        let leaf = match row(number) {
            None => Leaf::Answer(FilterAction::Denied),
            Some(row) if row.tests.is_empty() => Leaf::Answer(row.answer),
            Some(row) => Leaf::Ways([(row.tests, row.answer)].into_iter().chain(row.or).collect()),
        };
        push(number, leaf);
    }
    push(table::NEWEST + 1, Leaf::Answer(FilterAction::Unknown));
    ranges
}

/// A binary search over the ranges; the number is in the accumulator.
fn search(ranges: &[Range]) -> Vec<Instruction> {
    let (low, high) = ranges.split_at(ranges.len() / 2);
    match (low, high) {
        ([], [only]) => leaf(&only.leaf),
        (_, [middle, ..]) => {
            let (below, above) = (search(low), search(high));
            // A conditional jump reaches 255 instructions; an unconditional one reaches all.
            let distance = u32::try_from(below.len()).unwrap_or(u32::MAX);
            let mut code = match u8::try_from(distance) {
                Ok(near) => vec![branch(op::IF_AT_LEAST, middle.from, near, 0)],
                Err(_) => vec![branch(op::IF_AT_LEAST, middle.from, 0, 1), plain(op::JUMP, distance)],
            };
            code.extend(below);
            code.extend(above);
            code
        }
        (_, []) => vec![answer(FilterAction::Denied)],
    }
}

fn leaf(leaf: &Leaf) -> Vec<Instruction> {
    match leaf {
        Leaf::Answer(only) => vec![answer(*only)],
        Leaf::Ways(ways) => {
            let each = ways.iter().flat_map(|(tests, answer)| way(tests, *answer));
            each.chain([answer(FilterAction::Denied)]).collect()
        }
    }
}

/// Answers when all tests hold, else comes to what follows.
fn way(tests: &[Test], then: FilterAction) -> Vec<Instruction> {
    let mut code = vec![answer(then)];
    for test in tests.iter().rev() {
        let behind = u32::try_from(code.len()).unwrap_or(u32::MAX);
        code = [check(test, plain(op::JUMP, behind)), code].concat();
    }
    code
}

/// Falls through when the test holds, else does this.
fn check(test: &Test, miss: Instruction) -> Vec<Instruction> {
    let mut code = vec![plain(op::LOAD, ARGUMENTS + 8 * test.argument)];
    if test.mask != u32::MAX {
        code.push(plain(op::AND, test.mask));
    }
    let count = test.values.len();
    for (number, value) in test.values.iter().enumerate() {
        // Over the other comparisons and the one instruction after them.
        let distance = u8::try_from(count - number).unwrap_or(u8::MAX);
        code.push(branch(op::IF_EQUAL, *value, distance, 0));
    }
    if !test.is_wanted {
        code.push(plain(op::JUMP, 1));
    }
    code.push(miss);
    code
}

fn answer(answer: FilterAction) -> Instruction {
    let value = match answer {
        FilterAction::Allowed => libc::SECCOMP_RET_ALLOW,
        FilterAction::Denied => libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs(),
        FilterAction::NoFamily => libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT.unsigned_abs(),
        FilterAction::Unknown => libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        FilterAction::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    };
    plain(op::RETURN, value)
}

fn plain(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

fn branch(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}
