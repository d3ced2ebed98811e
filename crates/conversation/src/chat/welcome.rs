//! The first conversation of a home: a few questions of Bailey's own, which need no model. The answers
//! become `USER.md` and `SOUL.md`, which the person sees first. This happens once: a person who wants
//! neither file gets an empty `USER.md`.

use crate::{
    home::{Home, write_private},
    identity,
    print::{Printer, Style},
    prompt,
};
use anyhow::Result;
use bailey_kernel::Paper;

/// The most characters that are kept of one answer.
const ANSWER_CHARS_MAX: usize = 300;

/// How many of the questions ask for a name; they come first.
const NAMES: usize = 2;
/// The most words of a name.
const NAME_WORDS_MAX: usize = 4;

const QUESTIONS: [&str; 4] = [
    "What should I call you? ",
    "What do you want to call your agent? ",
    "How should it talk to you (brief, warm, formal, ...)? ",
    "What should it know about you and your work? ",
];

/// Asks when this home has no answers yet, and writes the text that the person accepts.
///
/// # Errors
/// When there is no terminal, or a file cannot be read or written.
pub(super) fn welcome(home: &Home, printer: &Printer) -> Result<()> {
    let user = home.paper(Paper::User);
    let soul = identity::read_soul(home)?;
    if user.symlink_metadata().is_ok() || soul.as_deref().is_some_and(|soul| soul != identity::DEFAULT) {
        return Ok(());
    }
    printer.note("four questions, asked only once; press Enter to skip a question");
    let mut answers: [String; 4] = Default::default();
    for (at, (question, answer)) in QUESTIONS.iter().zip(&mut answers).enumerate() {
        match asked(question, at < NAMES, printer)? {
            Some(said) => *answer = said.chars().take(ANSWER_CHARS_MAX).collect(),
            None => break,
        }
    }
    let [name, agent, tone, facts] = &answers;
    let about = lines(&[("Your person is called ", name), ("What to know of them: ", facts)]);
    let personality = lines(&[("You are called ", agent), ("How you speak: ", tone)]);
    let papers = [(Paper::User, &about), (Paper::Soul, &personality)];
    for (paper, text) in papers.iter().filter(|(_, text)| !text.is_empty()) {
        printer.line(printer.paint(Style::Bold, &home.paper(*paper).display().to_string()));
        text.lines().for_each(|line| printer.line(printer.paint(Style::Plain, &format!("  {line}"))));
    }
    let is_empty = about.is_empty() && personality.is_empty();
    let wanted = !is_empty && is_yes(prompt::answer("Save this for every future conversation? [Y/n] ")?);
    let about = if wanted { about } else { String::new() };
    // Checked before anything is written: a person whose answers are too long is asked again.
    identity::check_user(&user.display().to_string(), &about)?;
    if wanted && !personality.is_empty() {
        let text = format!("{personality}{}", identity::DEFAULT);
        write_private(&home.paper(Paper::Soul), text.as_bytes())?;
        identity::accept(home, Some(&text))?;
    }
    write_private(&user, about.as_bytes())?;
    printer.note("you can edit both files yourself at any time; now say what you want, or type /help");
    Ok(())
}

/// Asks one question, again where the answer is no answer to it. The same answer twice is meant.
fn asked(question: &str, is_name: bool, printer: &Printer) -> Result<Option<String>> {
    let mut before = None;
    loop {
        let Some(said) = prompt::answer(question)? else { return Ok(None) };
        match doubt(&said, is_name) {
            Some(why) if before.as_ref() != Some(&said) => printer.note(why),
            _ => return Ok(Some(said)),
        }
        before = Some(said);
    }
}

/// Why an answer is none.
fn doubt(said: &str, is_name: bool) -> Option<&'static str> {
    let said = said.trim();
    if said.starts_with(['/', '!']) || matches!(said.to_lowercase().as_str(), "help" | "?" | "quit" | "exit")
    {
        return Some(
            "commands work after these questions; type an answer, or press Enter to skip the question",
        );
    }
    let words = said.split_whitespace().count();
    // A name of three words has a capital letter, or a script without capitals.
    let is_small = words > 2 && said.chars().filter(|c| c.is_alphabetic()).all(char::is_lowercase);
    let is_sentence = words > NAME_WORDS_MAX || is_small || said.ends_with(['?', '!']);
    (is_name && is_sentence)
        .then_some("that looks like a sentence: type a name, or press Enter to skip the question")
}

fn lines(said: &[(&str, &String)]) -> String {
    said.iter()
        .filter(|(_, answer)| !answer.is_empty())
        .map(|(what, answer)| format!("{what}{answer}\n"))
        .collect()
}

/// Enter is a yes; a closed terminal is not.
fn is_yes(answer: Option<String>) -> bool {
    answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "" | "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::doubt;

    #[test]
    fn a_command_or_a_sentence_is_no_name() {
        for said in ["/help", "help", "!ls", "many files please", "what can you do?", "I want you to fix it"]
        {
            assert!(doubt(said, true).is_some(), "{said}");
        }
        for said in ["", "Ann", "ann bell", "Ludwig van der Berg", "山田 太郎 さん", "J. R. Smith"] {
            assert_eq!(doubt(said, true), None, "{said}");
        }
        assert_eq!(doubt("short and friendly, please", false), None);
        assert!(doubt("/help", false).is_some());
    }
}
