//! Colours or none: decided once, and passed to every view.

use anstyle::{AnsiColor, Style};

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Palette {
    /// No colours.
    Plain,
    /// The colours of the terminal.
    Colour,
}

/// What the environment says about colours.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ColorEnvironment<'a> {
    /// Whether the text goes to a terminal.
    pub(crate) terminal: bool,
    /// `NO_COLOR`
    pub(crate) no_color: Option<&'a str>,
    /// `CLICOLOR_FORCE`
    pub(crate) clicolor_force: Option<&'a str>,
    /// `TERM`
    pub(crate) term: Option<&'a str>,
}

impl Palette {
    /// Colours if the terminal supports them or `CLICOLOR_FORCE` is set, unless `NO_COLOR` is.
    pub(crate) fn decide(environment: ColorEnvironment<'_>) -> Self {
        let set = |variable: Option<&str>| variable.is_some_and(|value| !value.is_empty());
        let forced = set(environment.clicolor_force) && environment.clicolor_force != Some("0");
        let able = environment.terminal && environment.term != Some("dumb");
        if !set(environment.no_color) && (forced || able) { Self::Colour } else { Self::Plain }
    }

    /// For removed or wrong text.
    pub(crate) fn red(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default(), text)
    }

    /// For new text.
    pub(crate) fn green(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// For the speaker of a line.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }

    /// For text to be seen first.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// For text that may be skipped.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("{style}{text}{style:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_have_them_unless_somebody_says_otherwise() {
        let terminal =
            ColorEnvironment { terminal: true, term: Some("xterm"), ..Default::default() };
        let pipe = ColorEnvironment { terminal: false, ..terminal };
        for (environment, coloured) in [
            (terminal, true),
            (pipe, false),
            (ColorEnvironment { term: Some("dumb"), ..terminal }, false),
            (ColorEnvironment { term: None, ..terminal }, true),
            (ColorEnvironment { no_color: Some("1"), ..terminal }, false),
            (ColorEnvironment { no_color: Some(""), ..terminal }, true),
            (ColorEnvironment { clicolor_force: Some("1"), ..pipe }, true),
            (ColorEnvironment { clicolor_force: Some("0"), ..pipe }, false),
            (ColorEnvironment { clicolor_force: Some("1"), no_color: Some("1"), ..pipe }, false),
        ] {
            let expected = if coloured { Palette::Colour } else { Palette::Plain };
            assert_eq!(Palette::decide(environment), expected, "{environment:?}");
        }
    }
}
