// The capture log's file: records are gathered in memory and appended by write(2), at the latest a quarter of
// a second after they were made, also while the program itself does nothing. A failing write ends the log
// and leaves the program alone.
#pragma once

#include "record.h"

#include <string>

namespace neuron {

// Throws where the file cannot be made.
void open_event_log(const std::string& path);
void close_event_log();

// False where so many records wait to be written that the caller should flush, once it holds no lock.
bool append_record(const Record& record);
void flush_event_log();
void discard_pending_records();

// Records appended since the log was opened.
uint64_t record_count();

// Why writing stopped, or empty. Stays readable after the log is closed.
std::string event_log_error();

}  // namespace neuron
