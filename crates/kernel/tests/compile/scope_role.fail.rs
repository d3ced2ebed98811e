//! An agent's scope cannot be raised to the owner's.
use bailey_kernel::Scope;
use bailey_protocol::Role;

fn raise(scope: &mut Scope) {
    scope.role = Role::Owner;
}

fn main() {
    let _ = raise;
}
