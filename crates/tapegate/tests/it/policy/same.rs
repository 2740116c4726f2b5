//! A backtest says what a live shim has done: the same session, message by message.
