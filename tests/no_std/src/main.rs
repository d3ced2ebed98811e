//! A program without the standard library that seals an effect and has it decided. It exits with 0 when the
//! built-in rules deny what they must and a rule of its own allows the rest.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{string::String, vec, vec::Vec};
use bailey_policy::{Answer, Condition, Facts, Glob, Places, Policy, Rule, Tier, Verdict, built_in_rules};
use bailey_protocol::{
    Action, Cost, Effect, EffectId, Integrity, Labels, Role, Sealed, Secrecy, SessionId, Timestamp, WsPath,
};
use core::{alloc::GlobalAlloc, alloc::Layout, panic::PanicInfo};

#[link(name = "c")]
unsafe extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut u8;
    fn free(pointer: *mut u8);
    fn abort() -> !;
}

struct Heap;

// SAFETY: the C library's allocator meets the contract; sizes are rounded up as aligned_alloc(3) wants them.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let align = layout.align().max(16);
        unsafe { aligned_alloc(align, layout.size().next_multiple_of(align)) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _: Layout) {
        unsafe { free(pointer) }
    }
}

#[global_allocator]
static HEAP: Heap = Heap;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe { abort() }
}

// The precompiled `core` and `alloc` name these two; nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    unsafe { abort() }
}

#[unsafe(no_mangle)]
extern "C" fn main(_: i32, _: *const *const u8) -> i32 {
    let rule = Rule {
        name: String::from("reads"),
        tier: Tier::User,
        priority: 0,
        answer: Answer::Allow,
        matches: Condition { path: Some(vec![glob("/work/**")]), ..Condition::default() },
        except: Vec::new(),
        text: String::from("reads in the workspace"),
    };
    let policy = Policy::new(built_in_rules(), vec![rule]);
    let allowed = matches!(decide(&policy, "/work/a.txt"), Some(Verdict::Allow(_)));
    let denied = matches!(decide(&policy, "/home/me/.ssh/id_ed25519"), Some(Verdict::Deny(_)));
    if allowed && denied { 0 } else { 1 }
}

fn glob(text: &str) -> Glob {
    Glob::new(text).unwrap_or_else(|_| panic!())
}

fn decide(policy: &Policy, path: &str) -> Option<Verdict> {
    let effect = Effect {
        id: EffectId::new(0, [0; 10]),
        session: SessionId::new(0, [0; 10]),
        parent: None,
        call: None,
        role: Role::Agent,
        action: Action::Read { path: WsPath(String::from(path)) },
        labels: Labels::new(Integrity::User, Secrecy::Private),
        cost: Cost::default(),
    };
    let sealed = Sealed::new(effect).ok()?;
    let places = Places {
        workspace: String::from("/work"),
        user_home: String::from("/home/me"),
        bailey_home: String::from("/home/me/.bailey"),
        project: None,
        programs: Vec::new(),
    };
    let facts = Facts::new(&sealed, Timestamp::UNIX_EPOCH, &places);
    Some(policy.decide(&facts).verdict)
}
