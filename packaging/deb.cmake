# SPDX-License-Identifier: Apache-2.0
# Run by cpack before it packs a Debian package. Without dpkg-shlibdeps it would be made all the same, one that names
# none of the libraries it needs; and under a narrow umask its folders would be closed to all but root.
if(CPACK_GENERATOR MATCHES "DEB")
    find_program(MEMSCAPE_SHLIBDEPS dpkg-shlibdeps)
    if(NOT MEMSCAPE_SHLIBDEPS)
        message(FATAL_ERROR "dpkg-shlibdeps is missing, and without it the package would not say which "
                            "libraries it needs; install it: apt-get install dpkg-dev")
    endif()
    file(GLOB_RECURSE folders LIST_DIRECTORIES true "${CPACK_TEMPORARY_DIRECTORY}/*")
    foreach(folder IN LISTS folders)
        if(IS_DIRECTORY "${folder}")
            file(CHMOD "${folder}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
                GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
        endif()
    endforeach()
endif()
