//! Effects of commands, and the classes that rules name.

use std::fmt::{self, Display};
use std::ops::BitOr;

/// What a command does besides reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandEffects(u8);

/// The class of a command: its most severe effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandClass {
    /// It only reads.
    ReadOnly,
    /// It changes files or processes.
    Writes,
    /// It uses the network.
    Network,
    /// It runs other programs that the line does not show.
    RunsCommands,
    /// What it does is unknown.
    Unknown,
}

impl CommandEffects {
    /// None.
    pub const READ_ONLY: Self = Self(0);
    /// Files or processes are changed.
    pub const WRITES: Self = Self(1);
    /// The network is used.
    pub const NETWORK: Self = Self(2);
    /// Programs are run that the line does not show.
    pub const RUNS: Self = Self(4);
    /// Anything.
    pub const UNKNOWN: Self = Self(8);

    /// The most severe one.
    pub fn class(self) -> CommandClass {
        match self.0 {
            0 => CommandClass::ReadOnly,
            1 => CommandClass::Writes,
            2 | 3 => CommandClass::Network,
            4..=7 => CommandClass::RunsCommands,
            _ => CommandClass::Unknown,
        }
    }

    /// Whether there are no effects but those of these classes.
    pub fn are_within(self, classes: &[CommandClass]) -> bool {
        let allowed = classes.iter().fold(Self::READ_ONLY, |all, class| all | class.effect());
        // No effect at all is a class too, and must be among them.
        self.0 & !allowed.0 == 0 && (self.0 != 0 || classes.contains(&CommandClass::ReadOnly))
    }

    /// Whether one of these classes is among the effects.
    pub fn include_any(self, classes: &[CommandClass]) -> bool {
        classes.iter().any(|class| match class {
            CommandClass::ReadOnly => self.0 == 0,
            class => self.0 & class.effect().0 != 0,
        })
    }
}

impl BitOr for CommandEffects {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl CommandClass {
    /// All classes, the mildest first.
    pub const ALL: [Self; 5] =
        [Self::ReadOnly, Self::Writes, Self::Network, Self::RunsCommands, Self::Unknown];

    /// Its name in policies and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Writes => "writes",
            Self::Network => "network",
            Self::RunsCommands => "runs-commands",
            Self::Unknown => "unknown",
        }
    }

    /// The class with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }

    fn effect(self) -> CommandEffects {
        match self {
            Self::ReadOnly => CommandEffects::READ_ONLY,
            Self::Writes => CommandEffects::WRITES,
            Self::Network => CommandEffects::NETWORK,
            Self::RunsCommands => CommandEffects::RUNS,
            Self::Unknown => CommandEffects::UNKNOWN,
        }
    }
}

impl Display for CommandClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
