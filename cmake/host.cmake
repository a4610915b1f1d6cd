message(STATUS later)
