use bailey_policy::Denial;

fn look(denial: &Denial) {
    let _ = denial.isolation();
}

fn main() {
    let _ = look;
}
