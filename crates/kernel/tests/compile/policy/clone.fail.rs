use bailey_policy::{Allowed, Review};

fn copied<T: Clone>() {}

fn main() {
    copied::<Allowed>();
    copied::<Review>();
}
