//! A shell command line as a tree.
//!
//! The tree holds everything that can run a program, write a file or change what a later command
//! means. What depends on values that are only known when the line runs stays in the tree as a
//! part that is not literal; nothing is dropped.

/// Commands that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandList {
    /// The pipelines, in order.
    pub pipelines: Vec<CommandPipeline>,
    /// The bodies of the here-documents in it and below. The outermost list of a text has them all.
    pub heredocs: Vec<ShellWord>,
}

/// Commands that are connected by pipes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPipeline {
    /// The stages, in order.
    pub stages: Vec<CommandNode>,
    /// What follows it.
    pub end: PipelineEnd,
}

/// What follows a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineEnd {
    /// `;`, a line break or the end.
    Sequence,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `&`.
    Background,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandNode {
    /// A program with its arguments, or assignments and redirections alone.
    Simple(SimpleCommand),
    /// A construct that holds other commands.
    Compound(Box<CompoundCommand>),
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// The assignments in front of it.
    pub assignments: Vec<VariableAssignment>,
    /// The program and its arguments; empty if there are only assignments or redirections.
    pub words: Vec<ShellWord>,
    /// Its redirections, in order.
    pub redirections: Vec<ShellRedirection>,
}

/// A construct that holds other commands, with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompoundCommand {
    /// The construct.
    pub kind: CompoundKind,
    /// Its redirections, in order.
    pub redirections: Vec<ShellRedirection>,
}

/// The constructs that hold other commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompoundKind {
    /// `{ …; }`.
    Group(CommandList),
    /// `( … )`.
    Subshell(CommandList),
    /// `if`: conditions and branches, in order.
    If(Vec<CommandList>),
    /// `while` and `until`: the condition and the body.
    While(CommandList, CommandList),
    /// `for` and `select` over words.
    For {
        variable: String,
        /// The words; `None` for the positional parameters.
        words: Option<Vec<ShellWord>>,
        body: CommandList,
    },
    /// `for ((…; …; …))`.
    ArithmeticFor(ArithmeticText, CommandList),
    /// `case`: the subject, and for each branch its patterns and its commands.
    Case(ShellWord, Vec<(Vec<ShellWord>, CommandList)>),
    /// `(( … ))`.
    Arithmetic(ArithmeticText),
    /// `[[ … ]]`: its words and operators.
    Test(Vec<ShellWord>),
    /// The definition of a function.
    Function(String, CommandNode),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableAssignment {
    /// The variable.
    pub name: String,
    /// The subscript in `name[…]=`.
    pub subscript: Option<ArithmeticText>,
    /// The value; the elements of an array.
    pub values: Vec<ShellWord>,
    /// Whether it makes the variable an array: `name=(…)`.
    pub is_array: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellRedirection {
    /// The descriptor that it changes.
    pub descriptor: NamedDescriptor,
    /// What it does.
    pub kind: RedirectionKind,
    /// The file, descriptor, text or body.
    pub target: ShellWord,
}

/// The descriptor that a redirection changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedDescriptor {
    /// `2>`; also the one that an operator alone stands for: `>` is 1, `<` is 0.
    Number(String),
    /// `{name}>`, which assigns the number to a variable.
    Variable(String),
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectionKind {
    /// `<`.
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`, `<>`, and `>&` with a file.
    Write,
    /// `<&` and `>&` with a descriptor.
    Duplicate,
    /// `<<` and `<<<`.
    Text,
}

/// A word, before expansion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellWord {
    /// Its parts, in order; empty for `''`.
    pub parts: Vec<WordPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    /// Text that stands for itself.
    Literal {
        /// The text, without quotes and escapes.
        text: String,
        /// Whether any of it was quoted or escaped.
        quoted: bool,
    },
    /// `~` or `~user` at the start of a word.
    Tilde(String),
    /// An unquoted wildcard: `*`, `?` or a class such as `[a-z]`.
    Wildcard(String),
    /// A brace expansion such as `{a,b}`.
    Braces(String),
    /// A parameter expansion.
    Parameter(Box<ParameterExpansion>),
    /// `$(…)` and backquotes.
    Commands {
        list: CommandList,
        /// Whether the result is one word.
        quoted: bool,
    },
    /// `<(…)` and `>(…)`.
    Process(CommandList),
    /// `$((…))`.
    Arithmetic(ArithmeticText),
    /// The elements of an array after `declare name=`.
    Array(Vec<ShellWord>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterExpansion {
    /// The name: a variable, a digit, or a special character.
    pub name: String,
    /// Whether it is inside of double quotes.
    pub quoted: bool,
    /// A reason why its value may be run as code: `${x@P}`, `${!x}`.
    pub runs_value: Option<&'static str>,
    /// Whether it assigns its variable: `${x:=y}`.
    pub assigns: bool,
    /// Subscripts and offsets.
    pub arithmetic: Vec<ArithmeticText>,
    /// Words after an operator.
    pub words: Vec<ShellWord>,
}

/// An arithmetic expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArithmeticText {
    pub text: String,
    /// The expansions in it.
    pub parts: Vec<WordPart>,
}

impl ShellWord {
    /// The text of a word without expansions; `None` if it has any.
    pub fn literal(&self) -> Option<String> {
        let mut all = String::new();
        for part in &self.parts {
            match part {
                WordPart::Literal { text, .. } => all.push_str(text),
                _ => return None,
            }
        }
        Some(all)
    }

    /// The text of a word that has neither expansions nor quotes, as reserved words must be.
    pub fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [WordPart::Literal { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}

impl ParameterExpansion {
    /// Whether its value is always a number: `$?`, `$#`, `$$`, `$!`.
    pub fn is_number(&self) -> bool {
        matches!(self.name.as_str(), "?" | "#" | "$" | "!") && self.runs_value.is_none()
            || self.name == LENGTH
    }
}

/// The name of a parameter expansion that gives a length: `${#x}`.
pub(crate) const LENGTH: &str = "#length";
